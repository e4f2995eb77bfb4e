// The parts of a group, and how its operations run.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "artel/comm/collectives/calibration.h"
#include "artel/comm/collectives/host_lanes.h"
#include "artel/comm/collectives/lane_reduce.h"
#include "artel/comm/collectives/message_collectives.h"
#include "artel/comm/executor.h"
#include "artel/comm/failure.h"
#include "artel/comm/group.h"
#include "artel/comm/rank_name.h"
#include "artel/comm/shm/channel.h"
#include "artel/comm/task_queue.h"

namespace artel::comm {

struct Group::Core {
  std::shared_ptr<Transport> transport;
  GroupOptions options;
  std::vector<int> members;  // ranks in the transport
  std::vector<int> host_numbers;
  int rank = 0;
  uint32_t id = 0;
  uint32_t sequence = 0;
  // The first unused group number of this rank; shared by all its groups.
  std::shared_ptr<std::atomic<uint32_t>> next_id;
  Calibration calibration;
  std::unique_ptr<shm::Channel> channel;
  // For the last canonical reductions, by subtrees and by single lanes: most calls repeat one
  // layout.
  std::array<std::optional<std::pair<LaneLayout, LaneNodes>>, 2> known_lanes;
  // The last plans for exchanges by messages: for whole sums and for parts.
  std::array<std::optional<std::pair<LaneLayout, HostLanes>>, 2> known_plans;
  TaskQueue queue;  // last member: its thread uses the others

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
      const std::string host = transport->machine(member);
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

  // Counts bytes that another rank has read from this rank's memory, and the reverse.
  void count_in_place(int peer, size_t sent, size_t received) const {
    if (peer == rank) return;
    PeerMeter& meter = transport->traffic()[members[peer]];
    meter.count_sent(sent);
    meter.count_received(received);
  }

  void check_root(int root) const {
    require(root >= 0 && root < size(), ErrorKind::invalid_argument,
            "[comm] root: got rank {}, expected 0 to {}", root, size() - 1);
  }

  void check_peer(int peer) const {
    require(peer >= 0 && peer < size() && peer != rank, ErrorKind::invalid_argument,
            "[comm] peer: got rank {}, expected another rank of 0 to {}", peer, size() - 1);
  }

  // Runs body(patience) as the group's next operation, in its turn. A failure aborts the group on
  // all ranks.
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
    } catch (const std::bad_alloc&) {
      report(ErrorKind::communication, "out of memory");  // the others can do without this rank
      throw;
    } catch (const std::exception& error) {
      report(ErrorKind::internal, error.what());
      throw;
    }
  }

  void report(ErrorKind kind, std::string_view cause, std::string_view worker = "") noexcept {
    transport->abort(kind,
                     failure_text(worker, cause, rank_name(transport->hosts(), transport->rank())));
  }

  // True if the call can use shared memory. If false, compares the operations of all ranks.
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
    return known.emplace(layout, LaneNodes(layout.lanes, layout.ranges(), each_lane)).second;
  }

  // The plan by which ranks exchange a canonical sum. If `parts`, each rank receives only its part,
  // and all hosts must have the same number of ranks.
  const HostLanes& lane_plan(const LaneLayout& layout, bool parts) {
    auto& known = known_plans[parts ? 1 : 0];
    if (known && known->first == layout) return known->second;
    HostLanes plan(layout.lanes, layout.ranges(), host_numbers);
    const bool one_host = plan.hosts() == 1;
    if (one_host || (parts && plan.hosts() * plan.stripes() != size())) {
      // Each rank for itself.
      std::vector<int> apart(members.size());
      std::iota(apart.begin(), apart.end(), 0);
      plan = HostLanes(layout.lanes, layout.ranges(), apart);
    }
    return known.emplace(layout, std::move(plan)).second;
  }

  void execute_in_place(const Schedule& schedule, std::byte* data, std::span<const size_t> offsets,
                        Patience& patience, ElementType type = ElementType::u8,
                        const Reduction& reduction = {}) {
    execute(schedule, {data, offsets, data, offsets}, route(), patience, type, reduction);
  }
};

}  // namespace artel::comm
