// The private state of each worker in lossy exchanges, so that a resumed run has the bits of an
// uninterrupted one. Worker 0 stores it for all.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/train/parts/own_state.h"
#include "artel/train/strategy.h"

namespace artel {

class OwnStateStore {
 public:
  // `kind` distinguishes ways of exchanging: "compress int8, 8 local steps".
  OwnStateStore(const FitView& fit, std::string kind) : fit_(fit), kind_(std::move(kind)) {}
  void set_kind(std::string kind) { kind_ = std::move(kind); }

  // Stores this worker's state after a step. Only the first call for a step has an effect.
  void keep(int64_t step, const std::function<OwnState()>& state);
  // Collective: gathers the workers' states after this step on worker 0.
  void gather(int64_t step);

  // Worker 0 adds the gathered states, unless a step has been made since.
  void add_to(StrategyState& state) const;
  // This worker's state of a resumed run, if it fits the exchange.
  std::optional<OwnState> restore(const StrategyState& kept);

 private:
  std::string purpose() const;

  FitView fit_;
  std::string kind_;
  int64_t kept_ = -1, gathered_ = -1;
  OwnState own_;
  StrategyState all_;  // after step `gathered_`
};

}  // namespace artel
