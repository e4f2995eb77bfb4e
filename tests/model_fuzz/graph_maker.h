// Graphs of random ops, made step by step from recipes, which are random numbers: one adds one op
// or a few.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/graph/graph.h"

namespace artel::model_fuzz {

// With the output "loss", a scalar; without it if nothing could be made. A recipe that is left out
// changes the others as little as possible. `large`: values for which threads share work.
Graph make_graph(const std::vector<uint64_t>& recipes, bool large);

}  // namespace artel::model_fuzz
