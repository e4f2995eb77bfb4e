// Workers train apart, each with its own lanes, and meet every so many steps to go on from the
// average of their weights (train/averaging.h).
#pragma once

#include <limits>

#include "artel/train/averaging.h"
#include "artel/train/economy.h"
#include "artel/train/strategies/own_keeper.h"
#include "artel/train/strategy.h"

namespace artel {

class LocalSteps final : public Strategy {
 public:
  LocalSteps(const Fit& fit, const Economy& economy);
  // Begun in the middle of a fit: the first meetings are judged by what they cost, beside the
  // seconds that a step computes, and may become rarer. `traffic` is what there was before.
  LocalSteps(const Fit& fit, const Economy& economy, double computing, const Traffic& traffic);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  // Each worker has an optimizer state of its own; a checkpoint holds their mean, and all go on
  // from it, as a run that is resumed does.
  void settle(int64_t step, const Pause& pause) override;
  Traffic traffic() const override { return traffic_; }

 private:
  bool meets_anyway(int64_t step) const;
  void meet(int64_t step);
  void judge_meeting(double seconds);
  void keep(int64_t step, bool between);

  Economy economy_;
  double computing_;
  Averaging averaging_;
  OwnKeeper keeper_;
  Counts since_;  // the last meeting
  Traffic traffic_;
  bool stepped_ = false;
  int64_t settled_ = -1;
  int unjudged_meetings_ = 0;
  double meeting_cost_ = std::numeric_limits<double>::infinity();
};

}  // namespace artel
