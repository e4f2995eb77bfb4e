// What `auto` does when the network is too slow for the machines and it may be lossy.
#pragma once

#include <cstdint>
#include <string>

namespace artel {

// Seconds of a step: for each part, those of the worker that spends the most on it.
struct StepCost {
  double computing = 0;
  double waiting = 0;  // for sums of others, after computing
  double wire = 0;     // of the whole exchange, most of it hidden behind computing
};

// How to exchange less; by default, workers do not.
struct Economy {
  int64_t local_steps = 1;
  std::string compress = {};  // of the averages; empty: exact

  bool any() const { return local_steps > 1; }
};

// Nothing while waiting costs less than 6 % of computing. Otherwise enough local steps to bring
// the exchange down to 2 %: packing gradients at every step would cost more processor time. If
// that takes more than eight, averages are packed too (int8, a quarter of the bytes).
// There are at least three meetings in the `remaining` steps.
Economy choose_economy(const StepCost& cost, int64_t remaining = INT64_MAX);

// The same with more steps between meetings, if meetings turned out to cost more than expected.
Economy stretched(Economy economy, double meeting_seconds, double computing_seconds_of_a_step,
                  int64_t remaining = INT64_MAX);

}  // namespace artel
