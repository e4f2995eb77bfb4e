// Activation recomputation: selects the activations to keep for the backward pass.
//
// The forward pass is cut into segments of consecutive nodes. A kept segment holds all values that
// the backward pass reads. A recomputed segment holds only the values that later segments read; the
// others are computed again just before the backward pass needs them. Recomputed values have the
// same bits.
//
// Dynamic programming over the positions of the forward pass finds the cuts. For a bound W on
// recomputed segments and a price p per kept byte, the cheapest partition of the first n nodes is
// the minimum over m of the cheapest partition of the first m nodes plus the segment [m, n). This
// takes O(n^2) for each pair (W, p). A sweep over both gives the candidates, from which the caller
// takes the cheapest that fits.
#pragma once

#include <optional>
#include <vector>

#include "artel/graph/graph.h"

namespace artel {

struct RecomputeSegment {
  NodeId begin, end;
  bool recomputed;
};

struct RecomputeChoice {
  std::vector<RecomputeSegment> segments;
  double extra_seconds = 0;  // estimated time of recomputation
  size_t peak_bytes = 0;     // estimated peak memory of live values
};

// The Pareto-optimal choices: ascending extra time, descending memory.
std::vector<RecomputeChoice> recompute_choices(const Graph& graph);

Graph recompute(const Graph& graph, const RecomputeChoice& choice);

struct NormRecomputation {
  int lanes = 1;                    // largest number of such graphs that run together
  std::optional<bool> batch_norms;  // empty: if the activations of these lanes exceed 512 MiB
};

// Recomputes only the outputs of layer and RMS norms, which costs one pass over memory. Otherwise
// the weight gradient of the next layer would keep them: an eighth of all activations of a
// transformer. If `choice` asks for it, also recomputes batch norms whose backward pass does not
// need their output, in two passes over memory. This saves a sixth of ResNet-50's activations.
Graph recompute_norms(const Graph& graph, const NormRecomputation& choice = {});
bool recomputes_batch_norms(const Graph& graph);

}  // namespace artel
