#include "artel/comm/group.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>

#include "artel/comm/group_core.h"
#include "artel/comm/transports/transports.h"

namespace artel::comm {

Group Group::connect(const GroupOptions& options) { return {make_transport(options), options}; }

Group::Group(std::shared_ptr<Transport> transport, const GroupOptions& given) {
  GroupOptions options = given;
  if (options.outlives_workers) {
    options.watch.spared_from = 1;
    options.watch.spared_to = transport->size() - options.servers;
  }
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
double Group::timeout() const { return core_->options.timeout; }

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

void Group::map_place(uint64_t place, std::span<std::byte> address, bool shared) const {
  core_->transport->map_place(place, address, shared);
}

Traffic Group::traffic(int peer) const {
  return core_->transport->traffic()[core_->members[peer]].read();
}

Traffic Group::traffic() const {
  Traffic sum;
  for (int peer = 0; peer < size(); ++peer) sum += traffic(peer);
  return sum;
}

Traffic Group::traffic_between_hosts() const {
  Traffic sum;
  for (int peer = 0; peer < size(); ++peer)
    if (core_->host_numbers[peer] != core_->host_numbers[rank()]) sum += traffic(peer);
  return sum;
}

void Group::count_in_place(int peer, size_t sent, size_t received) const {
  core_->count_in_place(peer, sent, received);
}

PeerStatus Group::status(int peer) const { return core_->transport->status(core_->members[peer]); }

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
const Calibration& Group::calibration() const { return core_->calibration; }

void Group::abort(std::string_view cause) {
  core_->report(ErrorKind::cancelled, fmt::format("[comm] {}", cause));
}

void Group::abort(std::string_view cause, std::string_view worker) {
  core_->report(ErrorKind::cancelled, cause, worker);
}

void Group::check() { core_->transport->check(); }

void Group::dissolve(std::string_view cause) {
  core_->report(ErrorKind::communication, fmt::format("[comm] {}", cause));
}

void Group::dissolve(std::string_view cause, std::string_view worker) {
  core_->report(ErrorKind::communication, cause, worker);
}

Handle Group::start(std::function<void(Group&)> operations) {
  // The core outlives its queue, so the task must not keep it alive.
  return core_->queue.start([core = core_.get(), operations = std::move(operations)] {
    Group self(std::shared_ptr<Core>(std::shared_ptr<Core>(), core));
    operations(self);
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

std::vector<LaneRange> LaneLayout::ranges() const {
  std::vector<LaneRange> all;
  for (const int count : lanes_of_rank) {
    const int first = all.empty() ? 0 : all.back().last;
    all.push_back({first, first + count});
  }
  return all;
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
  WatchOptions silently = core_->options.watch;
  silently.after = std::numeric_limits<double>::infinity();
  return core_->receive(peer, tag, data, silently);
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
