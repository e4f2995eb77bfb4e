// The strategy of local steps. Internal to train.
#pragma once

#include <limits>

#include "artel/train/step/reduced_exchange.h"
#include "artel/train/strategies/averaging.h"
#include "artel/train/strategies/own_state_store.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategy.h"

namespace artel {

// True if workers that exchange every gradient may choose local steps during a fit.
bool may_choose_local_steps(const Situation& situation);

class LocalSteps final : public Strategy {
 public:
  // `chosen` by "auto" instead of the options.
  LocalSteps(const FitView& fit, const ReducedExchange& reduced, bool chosen);
  // Chosen for the rest of a fit. Compares the cost of the first averages with the computing
  // seconds of a step and may make averages rarer. `traffic` is that of earlier steps.
  LocalSteps(const FitView& fit, const ReducedExchange& reduced, double computing,
             const Traffic& traffic);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  // Each worker has its own optimizer state. A checkpoint holds their mean, and all continue from
  // that, as in a resumed run.
  void settle(int64_t step, const Pause& pause) override;
  void with_averages(const std::function<void()>& test) override;
  Traffic traffic() const override { return traffic_; }
  ExchangePath path() const override;
  // The reduced exchange if chosen, the velocity, and each worker's own state.
  StrategyState state() const override;
  void restore(const StrategyState& kept) override;

 private:
  std::optional<Counts> meet(int64_t step);
  bool meets_anyway(int64_t step) const;
  void judge_meeting(double seconds);
  void keep(int64_t step, bool between);
  std::vector<float> mean_over_workers(std::span<const float> values);

  ReducedExchange reduced_;
  bool chosen_ = true;
  double computing_;
  Parameters velocity_;  // of the outer update, laid out like the parameters; empty if unused
  Averaging averaging_;
  OwnStateStore own_states_;
  Counts since_;  // sums since the last average
  Traffic traffic_;
  bool stepped_ = false;
  int64_t settled_ = -1;
  int unjudged_meetings_ = 0;
  double meeting_cost_ = std::numeric_limits<double>::infinity();
};

}  // namespace artel
