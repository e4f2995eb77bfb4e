// The choice of local steps and compression by `auto` on slow networks (allow_lossy).
#pragma once

#include <cstdint>
#include <string>

namespace artel {

// Seconds of a step: for each part, the maximum over workers.
struct StepCost {
  double computing = 0;
  double waiting = 0;  // for sums, after computing
  double wire = 0;     // whole exchange, mostly overlapped with computing
};

// A reduced exchange. The default exchanges every step exactly.
struct ReducedExchange {
  int64_t local_steps = 1;
  std::string compress = {};  // codec of the averages; empty means exact

  bool any() const { return local_steps > 1; }
};

// Changes nothing while waiting costs less than 6 % of computing. Otherwise chooses enough local
// steps to reduce the exchange to 2 %; compressing gradients in every step would cost more
// processor time. If that takes more than eight steps, averages are also compressed (int8, a
// quarter of the bytes). At least three averages remain in the `remaining` steps.
ReducedExchange choose_reduced_exchange(const StepCost& cost, int64_t remaining = INT64_MAX);

// Increases the interval between averages if they cost more than expected.
ReducedExchange stretched(ReducedExchange reduced, double meeting_seconds,
                          double computing_seconds_of_a_step, int64_t remaining = INT64_MAX);

}  // namespace artel
