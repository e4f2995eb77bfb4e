// How workers with different processors come to use the same instructions.
#pragma once

#include <string>

#include "artel/cluster/cluster.h"

namespace artel {

// All workers make this call before they compile their first program. `wanted` is "own" (whatever
// the processor has), "common" (the best that all workers have; of those, one that is alone or
// outside knows only itself) or one of instruction_names of exec/instructions.h.
void agree_on_instructions(const std::string& wanted, Cluster& cluster);

}  // namespace artel
