// Merges what follows a layer into the layer's own kernel, before differentiation:
//   dense / conv2d -> relu                      the ReLU is applied as results are stored
//   batch_norm[_inference] -> relu              normalise and clip in one pass
//   batch_norm -> add(residual) -> relu         the end of a residual block in one pass
// Their gradient rules undo the same in one pass each. A value that anyone else uses stays as it
// is.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

Graph fuse_forward(const Graph& graph);

// A copy with the same leaves, outputs and state updates, without nodes that nothing needs.
Graph prune(const Graph& graph);

}  // namespace artel
