// Synchronous training: every step is one update by the sum of all lanes, and all workers hold the
// same weights.
//
//   artel::TrainerOptions options = {.strategy = "coordinator"};
//   options.strategy_options = {artel::SynchronousOptions{.coordinators = 2}};
#pragma once

#include <string>
#include <vector>

#include "artel/train/step/exchange_path.h"
#include "artel/train/strategies/registry.h"

namespace artel {

struct SynchronousOptions {
  std::string reduction = "auto";  // see reduction_of
  int64_t coordinators = 1;

  void visit(KeyVisitor& field);
};

// Resolves "auto" to "exact" or "fast": fast for a strategy that names an algorithm, exact
// otherwise and with sharded state.
std::string reduction_of(const TrainerOptions& options);

// Warnings that the strategy or reduction of `options` is replaced by `path`, which runs instead.
std::vector<std::string> replaced_settings(const TrainerOptions& options, const ExchangePath& path);

StrategyKind synchronous_kind();

}  // namespace artel
