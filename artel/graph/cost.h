// What nodes cost, estimated from their types alone. Only ratios matter.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

size_t bytes_of(const Graph& graph, ValueId id);

// On one core.
double estimated_seconds(const Graph& graph, const Node& node);

}  // namespace artel
