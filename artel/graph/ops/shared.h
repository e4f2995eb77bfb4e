// Helpers shared by op files.
#pragma once

#include "artel/graph/op.h"

namespace artel {

// Sums `x` over the axes along which `shape` was broadcast; the result has that shape.
Value sum_to(Value x, const Shape& shape);

// Converts a negative axis (-1 is the last). Rejects an axis out of range.
int64_t normalise_axis(const InferContext& context, int64_t axis, int rank);

// A unique name for the random stream of a new node: its layer, and the number of nodes of the same
// op in that layer so far.
std::string random_stream(const Graph& graph, std::string_view op);

}  // namespace artel
