// Tensor groups, whose workers share the layers of one network; each has some shards
// (graph/passes/split_layers.h).
//
//   artel::TrainerOptions options = {.lanes = 2};
//   options.strategy_options = {artel::TensorOptions{.tensor = 2}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct TensorOptions {
  int64_t tensor = 1;  // workers of a tensor group

  void visit(KeyVisitor& field);
};

// The number of shards per layer with these options.
int shards_of(const StrategyOptions& options);
// The number of workers per tensor group; 1 without groups. Throws if groups do not divide the
// workers.
int workers_sharing_layers(const StrategyOptions& options, int workers);

// Throws for options that are incompatible with shards.
void check_tensor(const Situation& now);

}  // namespace artel
