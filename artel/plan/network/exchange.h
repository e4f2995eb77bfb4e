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
  int servers = 0;              // their ranks follow those of the workers
  double bytes = 0;             // size of the gradients
  std::vector<int> hosts = {};  // host of each rank, including servers

  int ranks() const { return workers + servers; }
};

// The strategies that can be simulated, or those that are compared by default.
std::vector<std::string> exchange_strategies(bool only_compared = false);

// Workers fill machine by machine; server i runs on machine i. Throws for an unknown strategy, or
// more servers than machines.
Exchange make_exchange(std::string_view strategy, const Pool& pool, int servers, double bytes);

std::vector<Transfer> transfers_of(const Exchange& exchange, int rank);

// Closed forms: messages of all ranks, seconds without computation, and bytes of the busiest
// machine.
double message_count(const Exchange& exchange);
double exchange_seconds(const Exchange& exchange, const Pool& pool);
double busiest_bytes_by_form(const Exchange& exchange);

// The larger of bytes sent to and received from other machines, for the busiest machine.
double busiest_bytes(const Exchange& exchange);

}  // namespace artel::plan
