// Stores and transfers the states of strategies: in checkpoints, and from one worker to others.
// Internal to train.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "artel/train/strategy_state.h"

namespace artel {

namespace comm {
class Group;
}

// Names of a tensor that belongs to one worker: "worker 3/bucket 0/sum".
std::string name_of_worker(size_t worker, std::string_view name);
// The worker that owns a tensor with this name; empty if all workers have the same one.
std::optional<size_t> worker_of(std::string_view name);
// Removes tensors that belong to single workers.
void drop_tensors_of_workers(StrategyState& state);

// For strategies whose workers run apart: the steps of each worker that the weights contain. A
// resumed run continues after them.
struct OwnSteps {
  int64_t step = 0;                      // of worker 0, when the weights were saved
  std::map<int, int64_t> finished = {};  // by the number of a worker: its last step
  // The lanes of each worker after a step, from the slowest worker's last step on.
  std::map<int64_t, std::vector<int>> shares = {};
};
constexpr std::string_view kOwnSteps = "steps of workers";
std::string to_text(const OwnSteps& steps);
// Empty if the state does not contain them. Throws Error(corrupt).
std::optional<OwnSteps> own_steps(const StrategyState& state);

// The representation among a checkpoint's tensors and in its text.
NamedTensors to_tensors(const StrategyStates& states);
nlohmann::json to_json(const StrategyStates& states);
// Sets the values of all states to those in the text of a checkpoint. Drops the tensors of states
// without values. Also reads the formats of earlier versions.
void read_values(const nlohmann::json& text, StrategyStates& states);
// Moves a checkpoint's tensor to the state of its strategy. False if it belongs to none.
bool read_tensor(const NamedTensor& tensor, StrategyStates& states);

// Collective. Returns this worker's share of the tensors that worker `root` has kept.
NamedTensors share_tensors(comm::Group& group, const NamedTensors& kept, int root);

}  // namespace artel
