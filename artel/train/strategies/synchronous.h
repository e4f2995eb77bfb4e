// Every step is one update by the sum of all lanes of all workers: all hold the same weights.
//
//   artel::TrainerOptions options = {.strategy = "coordinator"};
//   options.strategy_options = {artel::SynchronousOptions{.coordinators = 2}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct SynchronousOptions {
  std::string reduction = "auto";  // see reduction_of
  int64_t coordinators = 1;

  void visit(KeyVisitor& field);
};

// "exact" or "fast", where the options say "auto": fast with a strategy that names an algorithm,
// exact otherwise, and wherever state is sharded.
std::string reduction_of(const TrainerOptions& options);

StrategyKind synchronous_kind();

}  // namespace artel
