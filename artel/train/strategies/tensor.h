// Workers in tensor groups: those of a group share the layers of one network, each with some of
// their shards (graph/passes/split_layers.h). With more workers than a group has, several groups
// share the lanes, and workers with the same shards add up their gradients. The bits are those of
// one worker with as many shards.
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

StrategyKind tensor_kind();

}  // namespace artel
