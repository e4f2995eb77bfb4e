#include "artel/train/strategy.h"

#include <numeric>

#include "artel/train/loop/swapped_averages.h"
#include "artel/train/loop/weight_readers.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/parts/divided_state.h"
#include "artel/train/step/exchange.h"
#include "artel/train/strategies/registry.h"

namespace artel {
namespace {

// Steps between measurements of the gradient's norm if it is not needed otherwise. Measuring reads
// the whole gradient once more.
constexpr int64_t kNormEvery = 20;

}  // namespace

bool FitView::trained(const std::string& name) const {
  return !begins_with_any(name, options.freeze);
}

std::string Strategy::state_name() const {
  if (!traits_.state_name.empty()) return traits_.state_name;
  return find_strategy(fit_.options.strategy, fit_.cluster.servers()).names.front();
}

DividedStateTransfer* state_transfer_of(Strategy& strategy) {
  DividedFacet* const divided = strategy.divided();
  return divided ? &divided->state_transfer() : nullptr;
}

bool Strategy::stops(const Outcome& outcome, bool wish) const {
  // With several workers, a worker's wish travels with the sums of the next step.
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
      fit_.readers.wait();
      waited += seconds_between(begin, Clock::now());
    };
    // A worker without lanes follows: its region receives the sums of the others.
    const bool follows = ready && fit_.lane_partition->own().size() == 0;
    const Memory region = follows ? fit_.stepper->memory_without_lanes() : Memory();
    for (int bucket = 0; follows && bucket < last; ++bucket) ready(bucket, {region});
    fit_.stepper->compute({.range = fit_.lane_partition->own(),
                           .observing = observing,
                           .batch = batch.total,
                           .step = options.number,
                           .stop = fit_.stop,
                           .trace = fit_.trace > 0,
                           .newcomers = fit_.newcomers,
                           .leaves = fit_.leaves,
                           .noise = lane_noise_,
                           .teacher = teacher_of(batch)},
                          batch.x, batch.y, [&](int bucket, const std::vector<Memory>& partials) {
                            if (bucket == last) before_change();
                            if (ready) ready(bucket, partials);
                          });
    before_change();  // also without lanes
    if (follows) ready(last, {region});
  }
  const double seconds = seconds_between(before, Clock::now()) - waited;
  fit_.lane_partition->computed(seconds);
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

// Each worker contributes the squares of its own lanes and zeros for the others, so the result does
// not depend on the number of workers.
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
                      .newcomers = statistics.newcomers,
                      .leaves = statistics.leaves};
  return outcome;
}

}  // namespace artel
