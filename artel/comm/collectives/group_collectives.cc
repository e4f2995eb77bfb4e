// The collectives of a group: each picks shared memory or messages and runs as one operation.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "artel/comm/collectives/shared_collectives.h"
#include "artel/comm/group_core.h"

namespace artel::comm {
namespace {

// Offsets of the ranks' parts, and the end.
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
          core_->count_in_place(from, is_root ? sizes[from] : 0, from == root ? output.size() : 0);
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
          core_->count_in_place(from, from == root ? input.size() : 0, is_root ? sizes[from] : 0);
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
          core_->count_in_place(from, input.size(), sizes[from]);
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
                      is_root ? output : std::span<std::byte>{}, type, reduction)) {
      for (int from = 0; from < size(); ++from)
        core_->count_in_place(from, from == root ? input.size() : 0, is_root ? input.size() : 0);
      return;
    }
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
    if (algorithm == Algorithm::hierarchical) {
      // Its schedule, in the order that keeps the wires between hosts busy.
      std::byte* const own = data.data();
      lane_reduce_messages(core_->route(), rank(), patience,
                           core_->lane_plan(lanes_by_host(core_->host_numbers), false), {&own, 1},
                           data, type, reduction, static_cast<size_t>(size()));
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
        reduce_shared(*core_->channel, patience, input, offsets[rank()], output, type, reduction)) {
      for (int from = 0; from < size(); ++from)
        core_->count_in_place(from, sizes[from], output.size());
      return;
    }
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

void Group::lane_reduce(const LaneLayout& layout, std::span<std::byte* const> partials,
                        std::span<std::byte> output, ElementType type, const Reduction& reduction,
                        bool each_lane, const Call& call) {
  const Operation operation{.bytes = output.size(),
                            .root = layout.lanes,
                            .kind = Kind::lane_reduce,
                            .type = type,
                            .reduction = reduction.kind};
  core_->run(operation, call, [&](Patience& patience) {
    // The nodes that each rank publishes: its lanes, or the subtrees that they form.
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
    std::vector<std::byte*> sums(partials.begin(), partials.end());
    if (each_lane) {
      sums.clear();
      size_t next = 0;
      for (const LaneRange& subtree : layout.subtrees(rank())) {
        const std::vector<const std::byte*> lanes(partials.begin() + next,
                                                  partials.begin() + next + subtree.size());
        add_lanes(subtree, lanes, partials[next], type, output.size() / size_of(type), reduction);
        sums.push_back(partials[next]);
        next += subtree.size();
      }
    }
    lane_reduce_messages(core_->route(), rank(), patience, core_->lane_plan(layout, false), sums,
                         output, type, reduction, divisor);
  });
}

void Group::lane_reduce_scatter(const LaneLayout& layout, std::span<std::byte* const> partials,
                                std::span<std::byte> output, ElementType type,
                                std::span<const size_t> sizes, const Call& call) {
  const Operation operation{.bytes = output.size(),
                            .root = layout.lanes,
                            .kind = Kind::lane_reduce_scatter,
                            .type = type};
  core_->run(operation, call, [&](Patience& patience) {
    const auto offsets = offsets_of(core_->sizes_or(sizes, 0));
    expect_bytes("output of lane_reduce_scatter", output.size(), offsets.back());
    const LaneNodes& nodes = core_->lane_nodes(layout, false);
    require(partials.size() == nodes.of(rank()).size(), ErrorKind::invalid_argument,
            "[comm] lane_reduce_scatter: got {} partial sums, expected {}", partials.size(),
            nodes.of(rank()).size());
    if (core_->meets_in_memory(patience, call) &&
        lane_reduce_scatter_shared(*core_->channel, patience, nodes, partials, output, offsets,
                                   type))
      return;
    lane_reduce_scatter_messages(core_->route(), rank(), patience, core_->lane_plan(layout, true),
                                 partials, output, offsets, type);
  });
}

}  // namespace artel::comm
