// Every step is one update by the sum of all lanes of all workers: all hold the same weights.
//
//   artel::TrainerOptions options = {.strategy = "coordinator"};
//   options.strategy_options = {artel::SynchronousOptions{.coordinators = 2}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct SynchronousOptions {
  std::string reduction = "exact";
  int64_t coordinators = 1;

  void visit(KeyVisitor& field);
};

StrategyKind synchronous_kind();

}  // namespace artel
