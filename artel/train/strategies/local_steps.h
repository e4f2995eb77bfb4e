// Workers train independently with their own lanes and average their weights periodically
// (train/strategies/averaging.h).
//
//   artel::TrainerOptions options = {.strategy = "ring"};
//   options.strategy_options = {artel::LocalStepsOptions{.local_steps = 8}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct LocalStepsOptions {
  int64_t local_steps = 1;
  double outer_momentum = 0;
  double outer_learning_rate = 1;

  void visit(KeyVisitor& field);
};

StrategyKind local_steps_kind();

}  // namespace artel
