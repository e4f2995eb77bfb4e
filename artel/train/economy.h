// What `auto` does when the wire is too slow for the machines and lossy means are allowed.
#pragma once

#include <cstdint>
#include <string>

namespace artel {

// Seconds of a step, of the worker that has most of each.
struct StepCost {
  double computing = 0;
  double waiting = 0;  // for sums of others, after computing
  double wire = 0;     // of the whole exchange, most of it hidden behind computing
};

// How to exchange less; the default: not at all.
struct Economy {
  int64_t local_steps = 1;
  std::string compress = {};  // of the averages; empty: exact

  bool any() const { return local_steps > 1; }
};

// Nothing while waiting costs less than 6 % of computing. Else local steps, as few as bring the
// wire down to 2 %: packing gradients at every step would cost the processor more. Where
// more than eight would be needed, averages are packed too (int8, a quarter of the bytes).
Economy choose_economy(const StepCost& cost);

// The same with more steps between meetings, if they were seen to cost more than foretold.
Economy stretched(Economy economy, double meeting_seconds, double computing_seconds_of_a_step);

}  // namespace artel
