#include "artel/train/strategy.h"

#include <algorithm>

#include "artel/train/trainer_state.h"

namespace artel {

bool Strategy::stops(const Outcome& outcome, bool wish) const {
  // The wish of one of several workers travels with the sums of the next step.
  return fit_.state.cluster.size() > 1 ? outcome.together && outcome.together->stop : wish;
}

double Strategy::compute(const data::Batch& batch, const StepOptions& options,
                         comm::LaneRange observing, const Stepper::Ready& ready) {
  const Clock::time_point before = Clock::now();
  {
    const Timeline::Scope scope(fit_.timeline, "compute", Timeline::kMain, "forward and backward");
    fit_.stepper.compute({.range = fit_.division.own(),
                          .observing = observing,
                          .batch = batch.total,
                          .step = options.number,
                          .stop = fit_.state.stop},
                         batch.x, batch.y, ready);
  }
  const double seconds = seconds_between(before, Clock::now());
  fit_.division.computed(seconds);
  return seconds;
}

void Strategy::settle(int64_t, const Pause&) {}

void Strategy::update(const StepOptions& options, int64_t batch, double share, int lanes,
                      const std::function<const std::byte*(int bucket)>& total) {
  Update& update = fit_.stepper.update();
  Update::Options how = {.step = options.number,
                         .learning_rate = options.learning_rate,
                         .gradient_scale = static_cast<float>(1 / share),
                         .lanes = lanes};
  const std::vector<Bucket>& buckets = fit_.stepper.buckets(batch);
  const int count = static_cast<int>(buckets.size());
  if (update.clips()) {
    for (int b = 1; b < count; ++b) total(b);
    how.gradient_scale *= update.clip_scale(total(0), how.gradient_scale);
  }
  for (int b = 0; b < count; ++b) {
    const std::byte* sums = total(b);
    const Timeline::Scope scope(fit_.timeline, "update", Timeline::kMain, "update");
    update.apply(buckets[b], sums, how);
  }
}

Strategy::Outcome Strategy::outcome_of(const StepStatistics& statistics, double share) {
  if (share == 0) return {.seen = false};
  return {.loss = statistics.loss / share,
          .accuracy = static_cast<double>(statistics.correct) /
                      static_cast<double>(std::max<int64_t>(1, statistics.labels))};
}

}  // namespace artel
