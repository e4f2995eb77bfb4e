// The strategy "ddpg": a sparse linear model, trained by delayed proximal gradient on parameter
// servers (ps/delayed_proximal.h).
//
//   artel::TrainerOptions options = {.strategy = "ddpg"};
//   options.strategy_options = {artel::DelayedProximalOptions{.l1 = 0.1, .blocks = 8}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct DelayedProximalOptions {
  double l1 = 0, l2 = 0;
  double tolerance = 0;
  int64_t blocks = 16;
  std::vector<std::string> block_order = {};
  double block_rate = 1;
  double delay_damping = 0.1;
  std::vector<std::string> filters = {"key cache", "changes"};

  void visit(KeyVisitor& field);
};

StrategyKind ddpg_kind();

}  // namespace artel
