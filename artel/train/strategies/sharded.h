// Every step is one update by the sum of all lanes, as in step, but each worker keeps only a part
// of what the optimizer remembers, of the gradients, or of the weights. The bits are those of one
// worker.
//
//   artel::TrainerOptions options = {.optimizer = artel::optim::adam(1e-3)};
//   options.strategy_options = {artel::ShardingOptions{.sharding = "optimizer"}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct ShardingOptions {
  std::string sharding = "none";

  bool any() const { return sharding != "none"; }
  // Each keeps what those before it do, too.
  bool gradients() const { return sharding == "gradients" || weights(); }
  bool weights() const { return sharding == "weights"; }

  void visit(KeyVisitor& field);
};

StrategyKind sharded_kind();

}  // namespace artel
