// Tensor groups: their workers share the layers of one network, each with some of their shards
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

// Of the layers of a network that these options ask for.
int shards_of(const StrategyOptions& options);
// The workers of a tensor group, of so many; 1 if there are no groups. Throws if the groups do not
// divide the workers.
int workers_sharing_layers(const StrategyOptions& options, int workers);

// Throws for options that do not go together with shards.
void check_tensor(const Situation& now);

}  // namespace artel
