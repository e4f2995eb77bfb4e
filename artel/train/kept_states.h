// The states of strategies between the strategies themselves: in checkpoints, and on their way from
// one worker to the others. Internal to train.
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
// The worker that a tensor with this name belongs to; nothing if it is the same on all.
std::optional<size_t> worker_of(std::string_view name);
// Leaves only what is the same on all workers.
void drop_tensors_of_workers(StrategyState& state);

// A value of a strategy in which workers run apart: the steps of each that the weights contain. A
// resumed run continues there.
struct OwnSteps {
  int64_t step = 0;                      // of worker 0, when the weights were saved
  std::map<int, int64_t> finished = {};  // by the number of a worker: its last step
};
constexpr std::string_view kOwnSteps = "steps of workers";
std::string to_text(const OwnSteps& steps);
// Nothing if the state does not tell. Throws an Error of kind corrupt.
std::optional<OwnSteps> own_steps(const StrategyState& state);

// As they lie among the tensors of a checkpoint, and in its text.
NamedTensors to_tensors(const StrategyStates& states);
nlohmann::json to_json(const StrategyStates& states);
// Sets the values of all states to those in the text of a checkpoint; the tensors of states that
// have none are dropped with them. Reads what earlier versions have written, too.
void read_values(const nlohmann::json& text, StrategyStates& states);
// Returns whether the tensor of a checkpoint belongs to the state of a strategy, which then has it.
bool read_tensor(const NamedTensor& tensor, StrategyStates& states);

// A collective call: what this worker gets of the tensors that worker `root` has kept.
NamedTensors share_tensors(comm::Group& group, const NamedTensors& kept, int root);

}  // namespace artel
