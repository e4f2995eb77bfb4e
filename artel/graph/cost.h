// Estimates the cost of nodes from their types. Only ratios are meaningful.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

size_t bytes_of(const Graph& graph, ValueId id);

// Seconds on one core.
double estimated_seconds(const Graph& graph, const Node& node);

}  // namespace artel
