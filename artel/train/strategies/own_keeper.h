// What each worker keeps for itself where exchanges are lossy, so that a run that was stopped
// continues with the bits of one that was not. Worker 0 holds it for all.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/train/own_state.h"
#include "artel/train/strategy.h"

namespace artel {

class OwnKeeper {
 public:
  // `kind` distinguishes ways of exchanging: "compress int8, 8 local steps".
  OwnKeeper(const Fit& fit, std::string kind) : fit_(fit), kind_(std::move(kind)) {}
  void set_kind(std::string kind) { kind_ = std::move(kind); }

  // Remembers this worker's state after a step; only the first call for a step has an effect.
  void keep(int64_t step, const std::function<OwnState()>& state);
  // A collective call: worker 0 gets what all workers have kept after this step.
  void gather(int64_t step);

  // Worker 0 adds what it holds for all, unless a step has been made since.
  void add_to(StrategyState& state) const;
  // When a run continues: this worker's part of what was kept, if that fits the exchange.
  std::optional<OwnState> restore(const StrategyState& kept);

 private:
  std::string purpose() const;

  Fit fit_;
  std::string kind_;
  int64_t kept_ = -1, gathered_ = -1;
  OwnState own_;
  StrategyState all_;  // after the step `gathered_`
};

}  // namespace artel
