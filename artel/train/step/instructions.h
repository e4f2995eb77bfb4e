// Agreement on common vector instructions between different processors.
#pragma once

#include <string>

#include "artel/cluster/cluster.h"

namespace artel {

// Collective, before the first program is compiled. `wanted` is "own" (those of this processor),
// "common" (the best that all present workers have), or one of instruction_names of
// exec/instructions.h.
void agree_on_instructions(const std::string& wanted, Cluster& cluster);

}  // namespace artel
