// What a strategy keeps from one step to the next beside weights and optimizer state, as
// checkpoints hold it.
//
//   artel::StrategyState state = {.values = {{"rounds", "3"}}};
//   state.tensors.push_back({"velocity", artel::Tensor({4})});
#pragma once

#include <map>
#include <string>

#include "artel/tensor/named_tensor.h"

namespace artel {

struct StrategyState {
  std::map<std::string, std::string> values = {};
  // One whose name begins with "worker 3/" is the business of that worker: when a run goes on, no
  // other gets it, except worker 0, which holds them for all.
  NamedTensors tensors = {};
};

// Of all strategies that a run has had, by Strategy::kept_as.
using StrategyStates = std::map<std::string, StrategyState>;

}  // namespace artel
