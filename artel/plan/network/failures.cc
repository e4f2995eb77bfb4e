#include "artel/plan/network/failures.h"

#include <cmath>

namespace artel::plan {
namespace {

// Share of the time lost if work is saved in pieces of `length` seconds, each with `overhead`
// seconds more. A failure costs the current piece and `pause`. The expected time of a piece is
// (1 / rate + pause)(exp(rate (length + overhead)) - 1).
double lost_share(double rate, double length, double overhead, double pause) {
  const double expected = (1 / rate + pause) * std::expm1(rate * (length + overhead));
  return std::isfinite(expected) ? 1 - length / expected : 1;
}

}  // namespace

FailureCost failure_cost(const FailureModel& model) {
  const double rate = model.machines / model.between_failures;
  FailureCost cost = {.per_day = 86400 * rate};
  cost.interval = std::sqrt(2 * model.checkpoint / rate);
  cost.elastic = lost_share(rate, model.step, 0, model.notice + model.regroup);
  cost.restarts = lost_share(rate, cost.interval, model.checkpoint,
                             model.notice + model.restart + model.checkpoint);
  return cost;
}

}  // namespace artel::plan
