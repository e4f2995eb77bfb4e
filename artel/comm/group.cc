#include "artel/comm/group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>

#include "artel/comm/calibration.h"
#include "artel/comm/executor.h"
#include "artel/comm/message_collectives.h"
#include "artel/comm/shared_collectives.h"
#include "artel/comm/shm/channel.h"
#include "artel/comm/task_queue.h"
#include "artel/comm/transports.h"

namespace artel::comm {
namespace {

// Where the parts of the ranks begin; one more entry for the end.
std::vector<size_t> offsets_of(std::span<const size_t> sizes) {
  std::vector<size_t> offsets(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), offsets.begin() + 1);
  return offsets;
}

// `bytes` cut into equal parts at element boundaries.
std::vector<size_t> even_offsets(size_t bytes, size_t width, int parts) {
  std::vector<size_t> offsets;
  for (int part = 0; part <= parts; ++part) offsets.push_back(bytes / width * part / parts * width);
  return offsets;
}

void copy(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty() && from.data() != to) std::memcpy(to, from.data(), from.size());
}

void expect_bytes(std::string_view what, size_t got, size_t expected) {
  require(got == expected, ErrorKind::invalid_argument,
          "[comm] size of {}: got {} bytes, expected {}", what, got, expected);
}

}  // namespace

struct Group::Core {
  std::shared_ptr<Transport> transport;
  GroupOptions options;
  std::vector<int> members;  // ranks in the transport
  std::vector<int> host_numbers;
  int rank = 0;
  uint32_t id = 0;
  uint32_t sequence = 0;
  // The first number that no group of this rank has; shared by all of them.
  std::shared_ptr<std::atomic<uint32_t>> next_id;
  Calibration calibration;
  std::unique_ptr<shm::Channel> channel;
  // Of the last canonical reductions, by subtrees and by each lane: most repeat one layout.
  std::array<std::optional<std::pair<LaneLayout, LaneNodes>>, 2> known_lanes;
  TaskQueue queue;  // last: its thread uses the rest

  Core(std::shared_ptr<Transport> the_transport, GroupOptions the_options,
       std::vector<int> the_members, uint32_t the_id,
       std::shared_ptr<std::atomic<uint32_t>> the_next_id)
      : transport(std::move(the_transport)),
        options(std::move(the_options)),
        members(std::move(the_members)),
        id(the_id),
        next_id(std::move(the_next_id)) {
    const auto self = std::find(members.begin(), members.end(), transport->rank());
    rank = static_cast<int>(self - members.begin());
    std::vector<std::string> known;
    for (int member : members) {
      const std::string& host = transport->hosts()[member];
      auto found = std::find(known.begin(), known.end(), host);
      if (found == known.end()) found = known.insert(known.end(), host);
      host_numbers.push_back(static_cast<int>(found - known.begin()));
    }
  }

  int size() const { return static_cast<int>(members.size()); }

  Route route() const {
    return {members, (uint64_t{id} << 40) | (uint64_t{sequence} << 1 & 0x7fffffffff)};
  }

  // The sizes as given, or all equal to `each`.
  std::vector<size_t> sizes_or(std::span<const size_t> sizes, size_t each) const {
    if (sizes.empty()) return std::vector<size_t>(size(), each);
    require(sizes.size() == members.size(), ErrorKind::invalid_argument,
            "[comm] sizes: got {} entries, expected one for each of {} ranks", sizes.size(),
            size());
    return {sizes.begin(), sizes.end()};
  }

  Handle receive(int peer, uint32_t tag, std::span<std::byte> data, const WatchOptions& watch);

  void check_root(int root) const {
    require(root >= 0 && root < size(), ErrorKind::invalid_argument,
            "[comm] root: got rank {}, expected 0 to {}", root, size() - 1);
  }

  void check_peer(int peer) const {
    require(peer >= 0 && peer < size() && peer != rank, ErrorKind::invalid_argument,
            "[comm] peer: got rank {}, expected another rank of 0 to {}", peer, size() - 1);
  }

  // Runs body(patience) as the group's next operation, in its turn, and tells the other ranks if it
  // fails.
  template <typename Body>
  void run(Operation operation, const Call& call, Body&& body) {
    if (!queue.is_own_thread() && !queue.idle()) {
      queue.start([&] { perform(operation, call, body); }).wait(Deadline::never());
      return;
    }
    perform(operation, call, body);
  }

  template <typename Body>
  void perform(Operation& operation, const Call& call, Body& body) {
    operation.group = id;
    operation.sequence = ++sequence;
    operation.algorithm = call.algorithm;
    operation.set_label(call.label);
    Patience patience(*transport, operation,
                      Deadline::after(call.timeout > 0 ? call.timeout : options.timeout),
                      options.watch);
    try {
      body(patience);
    } catch (const Error& error) {
      report(error.kind(), error.what());
      throw;
    } catch (const std::exception& error) {
      report(ErrorKind::internal, error.what());
      throw;
    }
  }

  void report(ErrorKind kind, std::string_view cause) noexcept {
    transport->abort(kind, fmt::format("{} (reported by rank {})", cause, transport->rank()));
  }

  // Whether shared memory is to be used; otherwise the operations of all ranks are compared here.
  bool meets_in_memory(Patience& patience, const Call& call) {
    if (channel == nullptr) {
      compare_operations(route(), rank, patience);
      return false;
    }
    if (call.algorithm == Algorithm::automatic || call.algorithm == Algorithm::direct) return true;
    channel->meet(patience);
    return false;
  }

  const LaneNodes& lane_nodes(const LaneLayout& layout, bool each_lane) {
    auto& known = known_lanes[each_lane ? 1 : 0];
    if (known && known->first == layout) return known->second;
    const auto& counts = layout.lanes_of_rank;
    require(counts.size() == members.size() &&
                std::accumulate(counts.begin(), counts.end(), 0) == layout.lanes,
            ErrorKind::invalid_argument,
            "[comm] lane_reduce: got lanes for {} ranks, expected {} lanes on {} ranks",
            counts.size(), layout.lanes, size());
    std::vector<LaneRange> ranges;
    for (int r = 0; r < size(); ++r) ranges.push_back(layout.range(r));
    return known.emplace(layout, LaneNodes(layout.lanes, ranges, each_lane)).second;
  }

  void execute_in_place(const Schedule& schedule, std::byte* data, std::span<const size_t> offsets,
                        Patience& patience, ElementType type = ElementType::u8,
                        const Reduction& reduction = {}) {
    execute(schedule, {data, offsets, data, offsets}, route(), patience, type, reduction);
  }
};

Group Group::connect(const GroupOptions& options) { return {make_transport(options), options}; }

Group::Group(std::shared_ptr<Transport> transport, const GroupOptions& options) {
  std::vector<int> members(transport->size());
  std::iota(members.begin(), members.end(), 0);
  core_ = std::make_shared<Core>(std::move(transport), options, std::move(members), 0,
                                 std::make_shared<std::atomic<uint32_t>>(1));
  uint64_t place = rank() == 0 ? core_->transport->prepare_channel(size()) : 0;
  broadcast(std::as_writable_bytes(std::span(&place, 1)), 0,
            {.label = "start", .timeout = options.join_timeout});
  core_->channel = core_->transport->open_channel(core_->members, place);
}

Group::Group(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;
Group::~Group() = default;

int Group::rank() const { return core_->rank; }
int Group::size() const { return core_->size(); }
std::vector<int> Group::host_numbers() const { return core_->host_numbers; }
std::string_view Group::transport() const { return core_->transport->name(); }

std::vector<std::string> Group::hosts() const {
  std::vector<std::string> names;
  for (int member : core_->members) names.push_back(core_->transport->hosts()[member]);
  return names;
}

SharedBytes Group::allocate(size_t bytes) { return core_->transport->allocate(bytes); }

std::optional<uint64_t> Group::place_of(std::span<const std::byte> data) const {
  return core_->transport->place_of(data);
}

std::byte* Group::at_place(uint64_t place, size_t bytes) const {
  return core_->transport->at_place(place, bytes);
}

bool Group::has_left(int peer) const {
  try {
    core_->transport->check();
  } catch (const Error&) {
    return false;
  }
  return core_->transport->status(core_->members[peer]).left;
}

void Group::set_phase(std::string_view phase) { core_->transport->set_phase(phase); }

void Group::set_calibration(const Calibration& calibration) { core_->calibration = calibration; }

void Group::abort(std::string_view cause) {
  core_->report(ErrorKind::cancelled, fmt::format("[comm] {}", cause));
}

Handle Group::start(std::function<void(Group&)> operations) {
  // The core outlives its queue, so the task must not keep it alive.
  return core_->queue.start([core = core_.get(), operations = std::move(operations)] {
    Group self(std::shared_ptr<Core>(std::shared_ptr<Core>(), core));
    operations(self);
  });
}

void Group::barrier(const Call& call) {
  core_->run({.kind = Kind::barrier}, call, [&](Patience& patience) {
    if (core_->meets_in_memory(patience, call)) {
      core_->channel->meet(patience);
      return;
    }
    const size_t nothing[] = {0, 0};
    core_->execute_in_place(reduce_schedule(size(), rank(), 0), nullptr, nothing, patience);
    core_->execute_in_place(broadcast_schedule(size(), rank(), 0), nullptr, nothing, patience);
  });
}

void Group::broadcast(std::span<std::byte> data, int root, const Call& call) {
  core_->run({.bytes = data.size(), .root = root, .kind = Kind::broadcast}, call,
             [&](Patience& patience) {
               core_->check_root(root);
               if (core_->meets_in_memory(patience, call)) {
                 broadcast_shared(*core_->channel, patience, data, root);
                 return;
               }
               const size_t offsets[] = {0, data.size()};
               core_->execute_in_place(broadcast_schedule(size(), rank(), root), data.data(),
                                       offsets, patience);
             });
}

void Group::scatter(std::span<const std::byte> input, std::span<std::byte> output, int root,
                    std::span<const size_t> given_sizes, const Call& call) {
  const auto sizes = core_->sizes_or(given_sizes, output.size());
  const auto offsets = offsets_of(sizes);
  const bool is_root = rank() == root;
  const Operation operation{.bytes = offsets.back(), .root = root, .kind = Kind::scatter};
  core_->run(operation, call, [&](Patience& patience) {
    core_->check_root(root);
    expect_bytes("output of scatter", output.size(), sizes[rank()]);
    if (is_root) expect_bytes("input of scatter", input.size(), offsets.back());
    const auto shown = is_root ? input : std::span<const std::byte>{};
    if (core_->meets_in_memory(patience, call) &&
        read_shared(*core_->channel, patience, shown, [&](int from, const std::byte* data) {
          if (from == root) copy({data + offsets[rank()], output.size()}, output.data());
        }))
      return;
    std::vector<size_t> own(size() + 1, output.size());
    std::fill_n(own.begin(), rank() + 1, 0);
    execute(scatter_schedule(size(), rank(), root), {input.data(), offsets, output.data(), own},
            core_->route(), patience, ElementType::u8, {});
    if (is_root) copy(input.subspan(offsets[root], output.size()), output.data());
  });
}

void Group::gather(std::span<const std::byte> input, std::span<std::byte> output, int root,
                   std::span<const size_t> given_sizes, const Call& call) {
  const auto sizes = core_->sizes_or(given_sizes, input.size());
  const auto offsets = offsets_of(sizes);
  const bool is_root = rank() == root;
  const Operation operation{.bytes = offsets.back(), .root = root, .kind = Kind::gather};
  core_->run(operation, call, [&](Patience& patience) {
    core_->check_root(root);
    expect_bytes("input of gather", input.size(), sizes[rank()]);
    if (is_root) expect_bytes("output of gather", output.size(), offsets.back());
    if (core_->meets_in_memory(patience, call) &&
        read_shared(*core_->channel, patience, input, [&](int from, const std::byte* data) {
          if (is_root) copy({data, sizes[from]}, output.data() + offsets[from]);
        }))
      return;
    std::vector<size_t> own(size() + 1, input.size());
    std::fill_n(own.begin(), rank() + 1, 0);
    execute(gather_schedule(size(), rank(), root), {input.data(), own, output.data(), offsets},
            core_->route(), patience, ElementType::u8, {});
    if (is_root) copy(input, output.data() + offsets[root]);
  });
}

void Group::all_gather(std::span<const std::byte> input, std::span<std::byte> output,
                       std::span<const size_t> given_sizes, const Call& call) {
  const auto sizes = core_->sizes_or(given_sizes, input.size());
  const auto offsets = offsets_of(sizes);
  core_->run({.bytes = offsets.back(), .kind = Kind::all_gather}, call, [&](Patience& patience) {
    expect_bytes("input of all_gather", input.size(), sizes[rank()]);
    expect_bytes("output of all_gather", output.size(), offsets.back());
    if (core_->meets_in_memory(patience, call) &&
        read_shared(*core_->channel, patience, input, [&](int from, const std::byte* data) {
          if (from == rank()) data = input.data();
          copy({data, sizes[from]}, output.data() + offsets[from]);
        }))
      return;
    copy(input, output.data() + offsets[rank()]);
    core_->execute_in_place(all_gather_schedule(size(), rank()), output.data(), offsets, patience);
  });
}

void Group::reduce(std::span<const std::byte> input, std::span<std::byte> output, ElementType type,
                   int root, const Reduction& reduction, const Call& call) {
  const Operation operation{.bytes = input.size(),
                            .root = root,
                            .kind = Kind::reduce,
                            .type = type,
                            .reduction = reduction.kind};
  core_->run(operation, call, [&](Patience& patience) {
    core_->check_root(root);
    const bool is_root = rank() == root;
    if (is_root) expect_bytes("output of reduce", output.size(), input.size());
    if (core_->meets_in_memory(patience, call) &&
        reduce_shared(*core_->channel, patience, input, 0,
                      is_root ? output : std::span<std::byte>{}, type, reduction))
      return;
    std::vector<std::byte> scratch(is_root ? 0 : input.size());
    std::byte* const work = is_root ? output.data() : scratch.data();
    copy(input, work);
    const size_t offsets[] = {0, input.size()};
    core_->execute_in_place(reduce_schedule(size(), rank(), root), work, offsets, patience, type,
                            reduction);
    if (is_root && reduction.kind == ReductionKind::mean)
      divide(type, work, input.size() / size_of(type), size());
  });
}

void Group::all_reduce(std::span<std::byte> data, ElementType type, const Reduction& reduction,
                       const Call& call) {
  const Operation operation{
      .bytes = data.size(), .kind = Kind::all_reduce, .type = type, .reduction = reduction.kind};
  core_->run(operation, call, [&](Patience& patience) {
    require(data.size() % size_of(type) == 0, ErrorKind::invalid_argument,
            "[comm] all_reduce: got {} bytes, expected a multiple of {} for {}", data.size(),
            size_of(type), to_string(type));
    if (size() == 1) return;
    if (core_->meets_in_memory(patience, call)) {
      all_reduce_shared(*core_->channel, patience, data, type, reduction);
      return;
    }
    Algorithm algorithm = call.algorithm;
    if (algorithm == Algorithm::automatic)
      algorithm = choose_all_reduce(core_->calibration, core_->host_numbers, data.size());
    if (algorithm == Algorithm::native) {
      require(size() == core_->transport->size() &&
                  core_->transport->native_all_reduce(data, type, reduction),
              ErrorKind::unsupported,
              "[comm] all_reduce: transport {} has no collective of its own for {} of {} in this "
              "group; try ring",
              transport(), to_string(reduction.kind), to_string(type));
      return;
    }
    const Schedule schedule = all_reduce_schedule(algorithm, size(), rank(), core_->host_numbers);
    const auto offsets = even_offsets(data.size(), size_of(type), schedule.chunks);
    core_->execute_in_place(schedule, data.data(), offsets, patience, type, reduction);
    if (reduction.kind == ReductionKind::mean)
      divide(type, data.data(), data.size() / size_of(type), size());
  });
}

void Group::reduce_scatter(std::span<const std::byte> input, std::span<std::byte> output,
                           ElementType type, const Reduction& reduction,
                           std::span<const size_t> given_sizes, const Call& call) {
  const auto sizes = core_->sizes_or(given_sizes, output.size());
  const auto offsets = offsets_of(sizes);
  const Operation operation{.bytes = input.size(),
                            .kind = Kind::reduce_scatter,
                            .type = type,
                            .reduction = reduction.kind};
  core_->run(operation, call, [&](Patience& patience) {
    expect_bytes("input of reduce_scatter", input.size(), offsets.back());
    expect_bytes("output of reduce_scatter", output.size(), sizes[rank()]);
    if (core_->meets_in_memory(patience, call) &&
        reduce_shared(*core_->channel, patience, input, offsets[rank()], output, type, reduction))
      return;
    std::vector<std::byte> work(input.begin(), input.end());
    core_->execute_in_place(reduce_scatter_schedule(size(), rank()), work.data(), offsets, patience,
                            type, reduction);
    copy({work.data() + offsets[rank()], output.size()}, output.data());
    if (reduction.kind == ReductionKind::mean)
      divide(type, output.data(), output.size() / size_of(type), size());
  });
}

void Group::all_to_all(std::span<const std::byte> input, std::span<const size_t> input_sizes,
                       std::span<std::byte> output, std::span<const size_t> output_sizes,
                       const Call& call) {
  const auto from = offsets_of(core_->sizes_or(input_sizes, input.size() / size()));
  const auto to = offsets_of(core_->sizes_or(output_sizes, output.size() / size()));
  core_->run({.kind = Kind::all_to_all}, call, [&](Patience& patience) {
    expect_bytes("input of all_to_all", input.size(), from.back());
    expect_bytes("output of all_to_all", output.size(), to.back());
    if (core_->meets_in_memory(patience, call)) core_->channel->meet(patience);
    execute(all_to_all_schedule(size(), rank()), {input.data(), from, output.data(), to},
            core_->route(), patience, ElementType::u8, {});
    copy(input.subspan(from[rank()], from[rank() + 1] - from[rank()]), output.data() + to[rank()]);
  });
}

LaneLayout LaneLayout::even(int lanes, int ranks) {
  LaneLayout layout{lanes, {}};
  for (int rank = 0; rank < ranks; ++rank)
    layout.lanes_of_rank.push_back(even_lanes(lanes, ranks, rank).size());
  return layout;
}

LaneRange LaneLayout::range(int rank) const {
  const auto begin = lanes_of_rank.begin();
  const int first = std::accumulate(begin, begin + rank, 0);
  return {first, first + lanes_of_rank[rank]};
}

void Group::lane_reduce(const LaneLayout& layout, std::span<std::byte* const> partials,
                        std::span<std::byte> output, ElementType type, const Reduction& reduction,
                        bool each_lane, const Call& call) {
  const Operation operation{.bytes = output.size(),
                            .root = layout.lanes,
                            .kind = Kind::lane_reduce,
                            .type = type,
                            .reduction = reduction.kind};
  core_->run(operation, call, [&](Patience& patience) {
    // What each rank shows: its lanes, or the subtrees that they form.
    const LaneNodes& given = core_->lane_nodes(layout, each_lane);
    require(partials.size() == given.of(rank()).size(), ErrorKind::invalid_argument,
            "[comm] lane_reduce: got {} partial sums, expected {} for lanes {} to {} of {}",
            partials.size(), given.of(rank()).size(), layout.range(rank()).first,
            layout.range(rank()).last, layout.lanes);
    const size_t divisor = layout.lanes;
    if (core_->meets_in_memory(patience, call) &&
        lane_reduce_shared(*core_->channel, patience, given, partials, output, type, reduction,
                           divisor))
      return;
    // Fewer bytes to send: each subtree is added up where its lanes are.
    const LaneNodes& subtrees = core_->lane_nodes(layout, false);
    std::vector<std::byte*> sums(partials.begin(), partials.end());
    if (each_lane) {
      sums.clear();
      size_t next = 0;
      for (const LaneRange& subtree : subtrees.of(rank())) {
        const std::vector<const std::byte*> lanes(partials.begin() + next,
                                                  partials.begin() + next + subtree.size());
        add_lanes(subtree, lanes, partials[next], type, output.size() / size_of(type), reduction);
        sums.push_back(partials[next]);
        next += subtree.size();
      }
    }
    lane_reduce_messages(core_->route(), rank(), patience, subtrees, sums, output, type, reduction,
                         divisor);
  });
}

namespace {

// A message that was started: waits with the group's watchdog.
class TransferState : public Handle::State {
 public:
  TransferState(std::shared_ptr<Transport> transport, const WatchOptions& watch, int peer,
                const Operation& operation, std::unique_ptr<Transfer> transfer)
      : transport_(std::move(transport)),
        watch_(watch),
        peer_(peer),
        operation_(operation),
        transfer_(std::move(transfer)) {}

  void wait(Deadline deadline) override {
    Patience(*transport_, operation_, deadline, watch_).wait_for(peer_, *transfer_);
  }

 private:
  std::shared_ptr<Transport> transport_;
  WatchOptions watch_;
  int peer_;
  Operation operation_;
  std::unique_ptr<Transfer> transfer_;
};

constexpr uint32_t kMaxTag = 1u << 22;

uint64_t user_tag(uint32_t group, uint32_t tag) {
  require(tag < kMaxTag, ErrorKind::invalid_argument, "[comm] tag: got {}, expected less than {}",
          tag, kMaxTag);
  return uint64_t{group} << 40 | uint64_t{1} << 39 | tag;
}

}  // namespace

Handle Group::send(int peer, uint32_t tag, std::span<const std::byte> data) {
  core_->check_peer(peer);
  const int to = core_->members[peer];
  return Handle(std::make_unique<TransferState>(
      core_->transport, core_->options.watch, to,
      Operation{.group = core_->id, .sequence = tag, .bytes = data.size(), .kind = Kind::send},
      core_->transport->send(to, user_tag(core_->id, tag), data)));
}

Handle Group::receive(int peer, uint32_t tag, std::span<std::byte> data) {
  return core_->receive(peer, tag, data, core_->options.watch);
}

Handle Group::listen(int peer, uint32_t tag, std::span<std::byte> data) {
  return core_->receive(peer, tag, data, {.after = std::numeric_limits<double>::infinity()});
}

Handle Group::Core::receive(int peer, uint32_t tag, std::span<std::byte> data,
                            const WatchOptions& watch) {
  check_peer(peer);
  const int from = members[peer];
  return Handle(std::make_unique<TransferState>(
      transport, watch, from,
      Operation{.group = id, .sequence = tag, .bytes = data.size(), .kind = Kind::receive},
      transport->receive(from, user_tag(id, tag), data)));
}

Group Group::split(int colour, int key) {
  struct Wish {
    int colour;
    int key;
    uint32_t next_id;
  };
  const Wish mine{colour, key, *core_->next_id};
  std::vector<Wish> wishes(size());
  all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(wishes)), {},
             {.label = "split"});
  std::vector<int> members;  // ranks of this group
  std::vector<int> colours;
  uint32_t id = 0;
  for (int r = 0; r < size(); ++r) {
    if (wishes[r].colour == colour) members.push_back(r);
    colours.push_back(wishes[r].colour);
    id = std::max(id, wishes[r].next_id);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return wishes[a].key < wishes[b].key; });
  std::sort(colours.begin(), colours.end());
  colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
  *core_->next_id = id + static_cast<uint32_t>(colours.size());
  id += static_cast<uint32_t>(std::find(colours.begin(), colours.end(), colour) - colours.begin());

  uint64_t place = 0;
  if (members.front() == rank())
    place = core_->transport->prepare_channel(static_cast<int>(members.size()));
  std::vector<uint64_t> places(size());
  all_gather(std::as_bytes(std::span(&place, 1)), std::as_writable_bytes(std::span(places)), {},
             {.label = "split"});

  std::vector<int> transport_ranks;
  for (int member : members) transport_ranks.push_back(core_->members[member]);
  auto core =
      std::make_shared<Core>(core_->transport, core_->options, transport_ranks, id, core_->next_id);
  core->calibration = core_->calibration;
  core->channel = core_->transport->open_channel(transport_ranks, places[members.front()]);
  return Group(std::move(core));
}

}  // namespace artel::comm
