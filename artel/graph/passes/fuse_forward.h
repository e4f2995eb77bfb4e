// Fuses the ops that follow a layer into the layer's kernel, before differentiation:
//   dense / conv2d -> relu                      the ReLU is applied as results are stored
//   dense -> gelu / gelu_tanh                   applied to blocks of results still in a cache
//   batch_norm[_inference] -> relu              normalise and clip in one pass
//   batch_norm -> add(residual) -> relu         the end of a residual block in one pass
// Their gradient rules are fused, too. A value with other users is not fused.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

// With `differentiable`, fused GELUs also output their derivative, for the gradient rule.
Graph fuse_forward(const Graph& graph, bool differentiable = true);

// A copy without unused nodes. Leaves, outputs, and state updates are kept.
Graph prune(const Graph& graph);

}  // namespace artel
