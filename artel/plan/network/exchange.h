// The messages of a gradient exchange, for simulation. Pure functions of strategy, workers, and
// rank, based on the schedules of the real collectives (comm/collectives/schedule.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/plan/machines/machines.h"

namespace artel::plan {

// A message that a rank sends or receives. All messages of a round are in flight together. A rank
// starts a round after it has finished the previous one.
struct Transfer {
  int round = 0;
  int peer = 0;
  bool sends = false;
  double bytes = 0;
};

struct Exchange {
  std::string strategy = "ring";
  int workers = 1;
  int servers = 1;              // for "ps"; their ranks follow those of the workers
  double bytes = 0;             // size of the gradients
  std::vector<int> hosts = {};  // host of each rank, including servers

  int ranks() const { return workers + (strategy == "ps" ? servers : 0); }
};

// "ring", "tree", "halving", "hierarchical", "direct", "coordinator", "ps".
const std::vector<std::string>& exchange_strategies();

// Workers fill machine by machine; server i runs on machine i. Throws for an unknown strategy, or
// more servers than machines.
Exchange make_exchange(std::string_view strategy, const Pool& pool, int servers, double bytes);

std::vector<Transfer> transfers_of(const Exchange& exchange, int rank);

// Total number of messages of all ranks.
double message_count(const Exchange& exchange);

// The larger of bytes sent to and received from other machines, for the busiest machine.
double busiest_bytes(const Exchange& exchange);

}  // namespace artel::plan
