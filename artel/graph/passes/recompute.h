// Decides which activations to keep for the backward pass and which to recompute.
//
// The forward pass is cut into segments of consecutive nodes. A segment is either kept (what the
// backward pass reads of it stays in memory) or recomputed: only what later segments read stays,
// and the rest is computed a second time just before the backward pass needs it. Recomputed values
// have the same bits.
//
// The best cuts come from dynamic programming over the positions of the forward pass. With the
// largest recomputed segment bounded by W and a price p for each kept byte, the cheapest partition
// of the first n nodes is the cheapest of the first m plus one segment [m, n): O(n^2) for each pair
// (W, p). Sweeping both gives the candidates, from which the caller takes the cheapest that fits.
#pragma once

#include <vector>

#include "artel/graph/graph.h"

namespace artel {

struct RecomputeSegment {
  NodeId begin, end;
  bool recomputed;
};

struct RecomputeChoice {
  std::vector<RecomputeSegment> segments;
  double extra_seconds = 0;  // estimated time of the second computation
  size_t peak_bytes = 0;     // estimated peak of the values that are alive together
};

// The useful choices, the one with the least extra time first; each further one needs less memory.
std::vector<RecomputeChoice> recompute_choices(const Graph& graph);

Graph recompute(const Graph& graph, const RecomputeChoice& choice);

// The same for the outputs of layer and RMS norms alone. Recomputing them costs one pass over
// memory; otherwise the weight gradient of the next layer would keep them: in transformers, an
// eighth of all activations. Where activations take more than 512 MiB, the same holds for batch
// norms whose backward pass does not need their output, which cost two passes: a sixth of
// ResNet-50's.
Graph recompute_norms(const Graph& graph);

}  // namespace artel
