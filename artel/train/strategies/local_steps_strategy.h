// The strategy of local steps. Internal to train.
#pragma once

#include <limits>

#include "artel/train/averaging.h"
#include "artel/train/economy.h"
#include "artel/train/strategies/own_keeper.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategy.h"

namespace artel {

// Whether workers that exchange every gradient may choose local steps in the course of a fit.
bool may_choose_local_steps(const Situation& situation);

class LocalSteps final : public Strategy {
 public:
  // `chosen`: by "auto", and not by the options.
  LocalSteps(const Fit& fit, const Economy& economy, bool chosen);
  // Chosen for the rest of a fit: the cost of the first meetings is compared with the seconds that
  // a step computes, and meetings may become rarer. `traffic` is that of the steps before.
  LocalSteps(const Fit& fit, const Economy& economy, double computing, const Traffic& traffic);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  bool computes_first() const override { return true; }
  std::optional<Counts> meet(int64_t step) override;
  bool has_met() const override { return stepped_ && since_.samples == 0; }
  // Each worker has an optimizer state of its own; a checkpoint holds their mean, and all continue
  // from that, as a resumed run does.
  void settle(int64_t step, const Pause& pause) override;
  void with_averages(const std::function<void()>& test) override;
  Traffic traffic() const override { return traffic_; }
  ExchangePath path() const override;
  // The economy, if it was chosen, the velocity, and what each worker keeps for itself.
  StrategyState state() const override;
  void restore(const StrategyState& kept) override;
  std::string kept_as() const override;

 private:
  bool meets_anyway(int64_t step) const;
  void judge_meeting(double seconds);
  void keep(int64_t step, bool between);
  std::vector<float> mean_over_workers(std::span<const float> values);

  Economy economy_;
  bool chosen_ = true;
  double computing_;
  Parameters velocity_;  // of the outer update, laid out like the parameters; empty without one
  Averaging averaging_;
  OwnKeeper keeper_;
  Counts since_;  // sums since the last meeting
  Traffic traffic_;
  bool stepped_ = false;
  int64_t settled_ = -1;
  int unjudged_meetings_ = 0;
  double meeting_cost_ = std::numeric_limits<double>::infinity();
};

}  // namespace artel
