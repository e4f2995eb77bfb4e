// Every step is one update by the sum of all lanes of all workers: all hold the same weights.
#pragma once

#include "artel/train/economy.h"
#include "artel/train/exchange.h"
#include "artel/train/strategies/own_keeper.h"
#include "artel/train/strategy.h"

namespace artel {

class Synchronous final : public Strategy {
 public:
  explicit Synchronous(const Fit& fit);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void settle(int64_t step, const Pause& pause) override;
  // Local steps, where lossy means are allowed and the first steps have shown that the wire is too
  // slow.
  std::unique_ptr<Strategy> successor() override;
  Traffic traffic() const override;

 private:
  void weigh(double computing);

  Exchange exchange_;
  OwnKeeper keeper_;
  bool stepped_ = false;
  // While it may still choose to exchange less: what the steps so far have cost.
  bool weighs_ = false;
  int64_t measured_ = 0;
  StepCost cost_;
  Exchange::Traffic traffic_before_;
  Economy economy_;
};

}  // namespace artel
