// What each worker keeps for itself where exchanges are lossy, so that a run that is stopped goes
// on with the bits of one that never was. Worker 0 holds it for all, in the trainer's state.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/train/own_state.h"
#include "artel/train/strategy.h"

namespace artel {

class OwnKeeper {
 public:
  // `kind` tells one way of exchanging from others: "compress int8, 8 local steps".
  OwnKeeper(const Fit& fit, std::string kind) : fit_(fit), kind_(std::move(kind)) {}
  void set_kind(std::string kind) { kind_ = std::move(kind); }

  // Remembers this worker's state, once a step: the first call of a step counts.
  void keep(int64_t step, const std::function<OwnState()>& state);
  // A collective call: worker 0 gets what all have kept after this step.
  void gather(int64_t step);
  // A collective call when a run goes on: this worker's part, if what there is fits this exchange.
  std::optional<OwnState> restore();

 private:
  std::string purpose() const;

  Fit fit_;
  std::string kind_;
  int64_t kept_ = -1, gathered_ = -1;
  OwnState own_;
};

}  // namespace artel
