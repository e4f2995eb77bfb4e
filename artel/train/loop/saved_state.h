// Reads facts about a run from the state of its checkpoint (checkpoint::Checkpoint::state).
#pragma once

#include <optional>
#include <string>

namespace artel {

// The number of lanes; empty if unknown or not chosen yet.
std::optional<int> lanes_in_state(const std::string& state);
// The version of the arithmetic (exec/numerics.h); empty if this is not the state of a run.
std::optional<int> numerics_in_state(const std::string& state);

}  // namespace artel
