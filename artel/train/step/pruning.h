// Magnitude pruning: sets the smallest weights to zero, at once or gradually during training, and
// keeps them zero.
//
// The zeros themselves are the mask. A weight of zero is not updated
// (optim::ParameterInfo::keep_zeros), so checkpoints, resumed runs, and other workers need only the
// weights.
//
//   // 90 % of the weights are zero after half of the steps.
//   artel::TrainerOptions options;
//   options.pruning = {.weights = 0.9, .every = 50};
//   artel::Trainer sparse(cluster, model, options);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artel/graph/graph.h"

namespace artel {

struct PruningOptions {
  bool keep_zeros = false;  // keep weights zero that are zero at the start
  double weights = 0;       // final share of zeros
  bool global = true;       // rank the weights of all layers together, or of each layer
  int64_t begin = 0;        // step after which the first weights are pruned
  int64_t end = 0;      // step after which the last weights are pruned; 0 means half of all steps
  int64_t every = 100;  // steps between two prunings

  bool keeps_zeros() const { return keep_zeros || weights > 0; }
};

// Names of the weights of dense layers and convolutions, including frozen layers.
std::vector<std::string> prunable_weights(const Graph& graph);

// The share of zeros after `step` in a run of `steps` steps. Rises from 0 at `begin` to `weights`
// at `end`, fast at first (Zhu and Gupta, 2017).
double zeros_after(const PruningOptions& options, int64_t step, int64_t steps);
// True if weights are pruned after `step` in a run of `steps` steps.
bool prunes_after(const PruningOptions& options, int64_t step, int64_t steps);

// The elements of a weight. Elements of `average` are set to zero with them, unless it is empty.
struct PrunedValues {
  std::string name;
  std::span<float> values, average = {};
};
// Sets the smallest values to zero until their share is `share`, of all weights together if
// `global`, otherwise of each weight. Of equal values, the first become zero. Throws if `share` is
// 1 or more.
void prune_smallest(const std::vector<PrunedValues>& weights, double share, bool global);

}  // namespace artel
