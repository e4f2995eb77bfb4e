#include "artel/train/loop/room.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/strategies/registry.h"

namespace artel {

void find_room(TrainerState& state, const MeshTask& task, int most) {
  comm::Group* const group = state.cluster.group();
  const bool may_wait = state.cluster.elastic() && state.cluster.membership().generation > 0;
  std::string lack;
  try {
    choose_mesh(task, state.options);
    strategy_at_work(
        {state.cluster, state.options, state.kept});  // refuses a mesh of other workers
    check_worker_memory(task, state.options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory || !may_wait) throw;
    lack = error.what();
  }
  if (may_wait) {
    if (group) {
      const std::vector<std::string> all = gather_text(*group, lack);
      const auto found = std::ranges::find_if(all, [](const auto& each) { return !each.empty(); });
      lack = broadcast_text(*group, found == all.end() ? "" : *found);
    }
    if (!lack.empty()) {
      state.cluster.wait_for_newcomers(most, lack, [&] { return state.stop || state.leave; });
      fail(ErrorKind::cancelled,
           "stopped while it waited for workers; resume from the last checkpoint");
    }
  }
  spare_mirrors(task, state.options);
}

void check_lanes(const TrainerState& state, const LanePartition& lane_partition, bool stands_by) {
  if (lane_partition.all_have_lanes()) return;
  const int workers = state.cluster.size(), lanes = state.lanes;
  const auto copies = static_cast<int>(lane_partition.layout().lanes_of_rank.size());
  const StrategyKind& kind = strategy_at_work({state.cluster, state.options, state.kept});
  require(stands_by, ErrorKind::invalid_argument,
          "cluster.lanes: the run has {} for {} workers, which cannot stand by with the strategy "
          "\"{}\" ({}); try -n {}, or a new run with cluster.lanes = {}",
          lanes, workers, state.options.strategy, kind.title, lanes, workers);
  if (state.cluster.rank() > 0) return;
  const std::string each =
      copies == workers ? "" : fmt::format(" in {} copies of the network", copies);
  log(LogLevel::warning,
      "{} workers{} for {}: {} stand by until others leave; the number of lanes is fixed, because "
      "another one would change the result's bits",
      workers, each, counted(lanes, "lane"), copies - lanes);
}

}  // namespace artel
