// The messages of a gradient exchange, for simulation. Pure functions of strategy, workers, and
// rank, based on the schedules of the real collectives (comm/collectives/schedule.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/comm/collectives/host_lanes.h"
#include "artel/plan/machines/machines.h"

namespace artel::plan {

// A segment of data that a rank sends or receives, in the order of its schedule. A rank sends a
// segment as soon as it has received the same bytes in all earlier rounds, so data streams through
// the ranks, as in comm/executor.h.
struct Transfer {
  int round = 0;
  int peer = 0;
  bool sends = false;
  double bytes = 0;
  double first = 0;  // offset of the first byte
};

struct Exchange {
  std::string strategy = "ring";
  int workers = 1;
  int servers = 1;              // for "ps"; their ranks follow those of the workers
  int lanes = 1;                // for "exact", of all workers together; at least one each
  double bytes = 0;             // size of the gradients
  std::vector<int> hosts = {};  // host of each rank, including servers
  std::shared_ptr<const comm::HostLanes> lane_plan = {};  // for "exact"

  int ranks() const { return workers + (strategy == "ps" ? servers : 0); }
};

// "exact", "ring", "tree", "halving", "hierarchical", "direct", "coordinator", "ps". "exact" is the
// sum over lanes that training uses by default.
const std::vector<std::string>& exchange_strategies();

// Workers fill machine by machine; server i runs on machine i. Throws for an unknown strategy, or
// more servers than machines.
Exchange make_exchange(std::string_view strategy, const Pool& pool, int servers, double bytes,
                       int lanes = 1);

std::vector<Transfer> transfers_of(const Exchange& exchange, int rank);

// For "exact": the largest number of partial sums that a machine sends. Otherwise 1.
double most_sums(const Exchange& exchange);

// Number of segments of all ranks together, or slightly more.
double message_count(const Exchange& exchange);

// The larger of bytes sent to and received from other machines, for the busiest machine.
double busiest_bytes(const Exchange& exchange);

}  // namespace artel::plan
