// Synchronous training with sharded optimizer state, gradients, or weights. Every step is one
// update by the sum of all lanes. The bits are those of a single worker.
//
//   artel::TrainerOptions options = {.optimizer = artel::optim::adam(1e-3)};
//   options.strategy_options = {artel::ShardingOptions{.sharding = "optimizer"}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct ShardingOptions {
  std::string sharding = "none";

  bool any() const { return sharding != "none"; }
  // Each level includes the previous ones.
  bool gradients() const { return sharding == "gradients" || weights(); }
  bool weights() const { return sharding == "weights"; }

  void visit(KeyVisitor& field);
};

StrategyKind sharded_kind();

}  // namespace artel
