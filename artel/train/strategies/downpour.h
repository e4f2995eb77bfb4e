// The strategy "downpour": asynchronous steps on parameter servers, after synchronous epochs.
//
//   artel::TrainerOptions options = {.strategy = "downpour"};
//   options.strategy_options = {artel::DownpourOptions{.push_every = 4, .fetch_every = 4}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct DownpourOptions {
  int64_t push_every = 1, fetch_every = 1;  // steps
  int64_t synchronous_epochs = 1;           // at the start

  void visit(KeyVisitor& field);
};

StrategyKind downpour_kind();

}  // namespace artel
