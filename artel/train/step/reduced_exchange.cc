#include "artel/train/step/reduced_exchange.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace artel {
namespace {

constexpr double kTolerated = 0.06, kAim = 0.02;  // of computing
constexpr int64_t kFewSteps = 8, kMostSteps = 128;
constexpr double kPacked = 0.25;

constexpr int64_t kFewestMeetings = 3;

// Steps between averages that cost `seconds`; a power of two.
int64_t steps_between(double seconds, double computing, int64_t remaining) {
  const double steps =
      std::clamp(std::ceil(seconds / (kAim * computing)), 2.0, static_cast<double>(kMostSteps));
  const auto most = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(2, remaining / kFewestMeetings))));
  return std::min(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(steps))));
}

}  // namespace

ReducedExchange choose_reduced_exchange(const StepCost& cost, int64_t remaining) {
  if (cost.waiting <= kTolerated * cost.computing) return {};
  const int64_t exact = steps_between(cost.wire, cost.computing, remaining);
  if (exact <= kFewSteps) return {.local_steps = exact};
  return {.local_steps = steps_between(kPacked * cost.wire, cost.computing, remaining),
          .compress = "int8"};
}

ReducedExchange stretched(ReducedExchange reduced, double meeting_seconds,
                          double computing_seconds_of_a_step, int64_t remaining) {
  reduced.local_steps = std::max(
      reduced.local_steps, steps_between(meeting_seconds, computing_seconds_of_a_step, remaining));
  return reduced;
}

}  // namespace artel
