#include "artel/train/strategy.h"

#include <numeric>

#include "artel/train/divided_state.h"
#include "artel/train/exchange.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/swapped_averages.h"

namespace artel {
namespace {

// Steps after which the norm of the gradient is measured if nothing else needs it: that reads the
// whole gradient once more.
constexpr int64_t kNormEvery = 20;

}  // namespace

bool Fit::trained(const std::string& name) const { return !begins_with_any(name, options.freeze); }

std::vector<DividedPart> Strategy::updated_parts() { return {}; }

std::string Strategy::kept_as() const {
  return find_strategy(fit_.options.strategy, fit_.cluster.servers()).names.front();
}

bool Strategy::stops(const Outcome& outcome, bool wish) const {
  // If there are several workers, one's wish travels with the sums of the next step.
  return fit_.cluster.size() > 1 ? outcome.together && outcome.together->stop : wish;
}

double Strategy::compute(const data::Batch& batch, const StepOptions& options,
                         comm::LaneRange observing, const Stepper::Ready& ready) {
  const Clock::time_point before = Clock::now();
  double waited = 0;
  noise_.reset();
  lane_noise_.clear();
  if (adds_gradients_ && fit_.noise_every > 0 && options.number % fit_.noise_every == 0)
    lane_noise_.resize(static_cast<size_t>(fit_.lanes));
  {
    const Timeline::Scope scope(fit_.timeline, "compute", Timeline::kMain, "forward and backward");
    const auto last = static_cast<int>(fit_.stepper->buckets(batch.total).size()) - 1;
    const auto before_change = [&] {
      const Clock::time_point begin = Clock::now();
      if (fit_.before_change) fit_.before_change();
      waited += seconds_between(begin, Clock::now());
    };
    fit_.stepper->compute({.range = fit_.division->own(),
                           .observing = observing,
                           .batch = batch.total,
                           .step = options.number,
                           .stop = fit_.stop,
                           .trace = fit_.trace > 0,
                           .newcomers = fit_.newcomers,
                           .noise = lane_noise_},
                          batch.x, batch.y, [&](int bucket, const std::vector<Memory>& partials) {
                            if (bucket == last) before_change();
                            if (ready) ready(bucket, partials);
                          });
    before_change();  // a worker without lanes has no buckets
  }
  const double seconds = seconds_between(before, Clock::now()) - waited;
  fit_.division->computed(seconds);
  return seconds;
}

Memory Strategy::compute_sums(const data::Batch& batch, const StepOptions& options,
                              comm::LaneRange observing) {
  const std::vector<Bucket>& buckets = fit_.stepper->buckets(batch.total);
  Memory sums;
  compute(batch, options, observing, [&](int bucket, const std::vector<Memory>& partials) {
    add_partials(buckets[bucket], partials);
    sums = partials.front();
  });
  return sums;
}

void Strategy::after_step(int64_t) {}
void Strategy::settle(int64_t, const Pause&) {}

void Strategy::with_averages(const std::function<void()>& test) {
  const SwappedAverages swapped(fit_.stepper->update());
  test();
}

// Each lane's squares come from the worker that has it, the others add zero: so the result does not
// depend on the number of workers.
void Strategy::measure_noise(int64_t batch, double squares, float scale) {
  static_assert(sizeof(LaneNoise) == 2 * sizeof(double));
  if (fit_.group())
    fit_.group()->all_reduce(std::as_writable_bytes(std::span(lane_noise_)), comm::ElementType::f64,
                             {}, {.label = "squares of lanes"});
  const double square = double{scale} * scale;
  for (LaneNoise& lane : lane_noise_) lane.squares *= square;
  noise_ = gradient_noise(lane_noise_, batch, squares * square);
}

void Strategy::update(const StepOptions& options, int64_t batch, double scale, int lanes,
                      const std::function<Memory(int bucket)>& total) {
  Update& update = fit_.stepper->update();
  Update::Options how = {.step = options.update,
                         .learning_rate = options.learning_rate,
                         .gradient_scale = static_cast<float>(scale),
                         .lanes = lanes};
  const std::vector<Bucket>& buckets = fit_.stepper->buckets(batch);
  Memory sums;  // one region for all buckets
  for (int b = 0; b < static_cast<int>(buckets.size()); ++b) sums = total(b);
  std::optional<double> squares;
  if (update.clips() || measures_noise() || options.number % kNormEvery == 1) {
    const Timeline::Scope scope(fit_.timeline, "update", Timeline::kMain, "norm");
    const std::vector<double> each = update.squares(sums);
    squares = std::accumulate(each.begin(), each.end(), 0.0);
  }
  if (measures_noise()) measure_noise(batch, *squares, how.gradient_scale);
  const Timeline::Scope scope(fit_.timeline, "update", Timeline::kMain, "update");
  if (update.clips())
    how.gradient_scale *= update.clip_scale(*squares, how.gradient_scale);
  else if (squares)
    update.measure_norm(*squares, how.gradient_scale);
  update.apply(sums, how);
}

Strategy::Outcome Strategy::outcome_of(const StepStatistics& statistics) {
  if (!statistics.counts()) return {.seen = false};
  return {.loss = statistics.loss(), .metrics = statistics.sums};
}

Strategy::Outcome Strategy::outcome_together(const StepStatistics& statistics,
                                             const data::Batch& batch) {
  Outcome outcome = outcome_of(statistics);
  outcome.together = {.samples = batch.total,
                      .loss = statistics.weighted_loss,
                      .weight = statistics.weight,
                      .metrics = statistics.sums,
                      .stop = statistics.stop,
                      .trace = statistics.trace,
                      .newcomers = statistics.newcomers};
  return outcome;
}

}  // namespace artel
