// Merges what follows a layer into the layer's own kernel, before differentiation:
//   dense / conv2d -> relu                      the ReLU is applied as results are stored
//   dense -> gelu / gelu_tanh                   applied to blocks of results still in a cache
//   batch_norm[_inference] -> relu              normalise and clip in one pass
//   batch_norm -> add(residual) -> relu         the end of a residual block in one pass
// Their gradient rules do the reverse, also in one pass each. A value that has other users is left
// as it is.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

// With `differentiable`, fused GELUs also give their derivative: their gradient rule needs it.
Graph fuse_forward(const Graph& graph, bool differentiable = true);

// A copy with the same leaves, outputs and state updates, without nodes that nothing needs.
Graph prune(const Graph& graph);

}  // namespace artel
