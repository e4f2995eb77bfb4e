// The state of a strategy in checkpoints, in addition to weights and optimizer state.
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
  // A tensor named "worker 3/..." belongs to that worker. After a resume, only worker 3 and worker
  // 0, which stores them for all, receive it.
  NamedTensors tensors = {};
};

// The states of all strategies of a run, by Strategy::state_name.
using StrategyStates = std::map<std::string, StrategyState>;

}  // namespace artel
