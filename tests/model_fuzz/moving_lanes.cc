#include "tests/model_fuzz/moving_lanes.h"

#include <algorithm>

#include "artel/base/random.h"
#include "artel/comm/collectives/balance.h"
#include "artel/train/lane_partition.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategy.h"

namespace artel::model_fuzz {
namespace {

// Of the training on this thread; null if its lanes stay.
thread_local LanePartition* lanes_that_move = nullptr;

bool moves_lanes(const Situation& now) {
  return now.cluster.size() > 1 &&
         now.options.strategy_options.of<MovingLanesOptions>().moves_lanes;
}

// A variant without a name, which replaces `kind` where lanes are to move.
StrategyKind moving(const StrategyKind& kind) {
  StrategyKind variant = kind;
  variant.title += ", lanes move";
  variant.names.clear();
  variant.visit_keys = keys_of<MovingLanesOptions>();
  variant.check = {};
  variant.may_follow = {};
  variant.wanted = [original = kind](const Situation& now) {
    const auto& names = original.names;
    return moves_lanes(now) &&
           (original.wanted ? original.wanted(now)
                            : std::ranges::find(names, now.options.strategy) != names.end());
  };
  variant.make = [make = kind.make](const FitView& fit) {
    lanes_that_move = fit.lane_partition;
    return make(fit);
  };
  return variant;
}

}  // namespace

void register_moving_lanes() {
  for (const char* title : {"In step", "In parts", "Parameter servers"})
    for (const StrategyKind* kind : strategy_kinds())
      if (kind->title == title) register_strategy(moving(*kind));
}

void move_lanes(uint64_t seed, int64_t step) {
  if (!lanes_that_move || !lanes_that_move->all_have_lanes()) return;
  Random random{seed, 3, static_cast<uint64_t>(step)};
  std::vector<double> seconds(lanes_that_move->layout().lanes_of_rank.size());
  for (double& each : seconds) each = 0.1 + random.uniform();
  lanes_that_move->set(comm::balanced_lanes(lanes_that_move->layout(), seconds, 0));
}

}  // namespace artel::model_fuzz
