// Small pieces that several op files use.
#pragma once

#include "artel/graph/op.h"

namespace artel {

// Sums `x` over the axes along which `shape` was broadcast; the result has that shape.
Value sum_to(Value x, const Shape& shape);

// Turns -1 into the last axis, and so on; rejects an axis out of range.
int64_t normalise_axis(const InferContext& context, int64_t axis, int rank);

// What distinguishes the random numbers of a new node from those of others: its layer, and how many
// nodes of the same op that layer has so far.
std::string random_stream(const Graph& graph, std::string_view op);

}  // namespace artel
