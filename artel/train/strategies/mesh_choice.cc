#include "artel/train/strategies/mesh_choice.h"

#include <algorithm>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/memory_limit.h"
#include "artel/base/text.h"
#include "artel/data/fetch.h"
#include "artel/plan/graph_costs.h"
#include "artel/plan/measure.h"
#include "artel/train/agreement.h"
#include "artel/train/memory_needs.h"
#include "artel/train/mesh_axes.h"
#include "artel/train/mesh_forecast.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/tensor.h"

namespace artel {
namespace {

// A forecast is from above: what a machine seems to have too little of by less than this may fit.
constexpr double kDoubt = 1.25;

int64_t largest_lane(const MeshTask& task) {
  const int lanes = task.stepper.lanes();
  return (task.batch_size + lanes - 1) / lanes;
}

std::vector<int> machines(const Cluster& cluster) {
  const comm::Group* const group = cluster.membership().group.get();
  return group ? group->host_numbers() : std::vector<int>{0};
}

int slots_of(Stepper& stepper) { return static_cast<int>(stepper.update().memory().size()); }

// Of this worker, if nobody has said: the machine's, divided among those who work there.
double detected_memory(const Cluster& cluster) {
  const std::vector<int> hosts = machines(cluster);
  const auto here = std::ranges::count(hosts, hosts[static_cast<size_t>(cluster.rank())]);
  return static_cast<double>(memory_limit_bytes()) / static_cast<double>(here);
}

MeshQuestion question_of(const MeshTask& task, const TrainerOptions& options) {
  const StrategyOptions& strategy = options.strategy_options;
  const int64_t samples = largest_lane(task);
  Stepper& stepper = task.stepper;
  const bool measures = stepper.shards() == 1 && strategy.of<PipelineOptions>().cuts == "measured";
  const std::string& sharding = strategy.of<ShardingOptions>().sharding;
  return {
      .workers = task.cluster.size(),
      .lanes = stepper.lanes(),
      .threads = stepper.pool().threads(),
      .shards = stepper.shards(),
      .slots = slots_of(stepper),
      .schedule = strategy.of<PipelineOptions>().schedule,
      .sharding = sharding == "none" ? "" : sharding,
      .memory = options.worker_memory > 0 ? static_cast<double>(options.worker_memory)
                                          : detected_memory(task.cluster),
      .mirrors = task.cluster.elastic() && strategy.of<MirrorOptions>().mirror_every > 0,
      .hosts = machines(task.cluster),
      .graph = [&stepper, samples](const ShardPart& part) { return stepper.graph(samples, part); },
      .seconds =
          [&stepper, measures](const Graph& graph) {
            return measures ? plan::measured_node_seconds(graph, stepper.choices(),
                                                          data::data_folder() / "costs")
                            : plan::estimated_node_seconds(graph);
          }};
}

// By worker 0: pipeline, tensor and sharding; or, after a colon, why there is nothing to choose.
std::string best_choice(const MeshQuestion& question) {
  const std::vector<MeshForecast> meshes = forecast_meshes(question);
  const std::optional<MeshForecast> best = best_mesh(meshes, question.memory);
  if (!best)
    return fmt::format(
        ":cluster.mesh: got {} workers with {} each, expected more, as no mesh of theirs has room "
        "for the network; try {}",
        question.workers, format_bytes(question.memory), what_would_fit(question));
  log(LogLevel::info, "mesh: {}: {}", to_string(*best),
      reasons_for(*best, meshes, question.memory));
  return fmt::format("{} {} {}", best->size.pipeline, best->size.tensor, best->sharding);
}

// Of the mesh that the options say: memory, and that of copies.
MeshForecast needed_memory(const MeshTask& task, const TrainerOptions& options,
                           const MeshQuestion& question) {
  const MeshSize size = mesh_size(options.strategy_options);
  const auto& sharding = options.strategy_options.of<ShardingOptions>();
  if (size.workers() > 1) return forecast_mesh(question, size, sharding.sharding);
  const int workers = task.cluster.size();
  const int own = (task.stepper.lanes() + workers - 1) / workers;
  const ShardingOptions parts = workers > 1 ? sharding : ShardingOptions();
  const MemoryNeeds needs =
      memory_needs(task.stepper.program(largest_lane(task)), own, std::min(own, question.threads),
                   question.slots, workers, parts);
  return {.memory = static_cast<double>(needs.total()) + kProgramBytes,
          .mirrors = question.mirrors ? static_cast<double>(needs.mirrors) : 0};
}

}  // namespace

void choose_mesh(const MeshTask& task, TrainerOptions& options) {
  MeshOptions& mesh = options.strategy_options.of<MeshOptions>();
  if (mesh.mesh != "auto" || mesh.chosen) return;
  const MeshSize asked = mesh_size(options.strategy_options);
  require(
      asked.workers() == 1, ErrorKind::invalid_argument,
      "cluster.mesh: got \"auto\" with cluster.pipeline = {} and cluster.tensor = {}, expected 1 "
      "for both; try that, or cluster.mesh = \"given\"",
      asked.pipeline, asked.tensor);
  mesh.chosen = true;
  comm::Group* const group = task.cluster.membership().group.get();
  if (!group) return;
  const std::string text =
      broadcast_text(*group, group->rank() == 0 ? best_choice(question_of(task, options)) : "");
  if (text.starts_with(':')) throw Error(ErrorKind::memory, text.substr(1));
  std::istringstream choice(text);
  choice >> options.strategy_options.of<PipelineOptions>().pipeline >>
      options.strategy_options.of<TensorOptions>().tensor >>
      options.strategy_options.of<ShardingOptions>().sharding;
}

void spare_mirrors(const MeshTask& task, TrainerOptions& options) {
  auto& [mirror_every] = options.strategy_options.of<MirrorOptions>();
  comm::Group* const group = task.cluster.membership().group.get();
  const auto& sharding = options.strategy_options.of<ShardingOptions>();
  const bool divides = mesh_size(options.strategy_options).workers() > 1 || sharding.any();
  if (!group || !divides || mirror_every == 0) return;
  std::string reason;
  if (group->rank() == 0 && options.worker_memory > 0) {
    const MeshQuestion question = question_of(task, options);
    const MeshForecast needed = needed_memory(task, options, question);
    if (!needed.fits_with_mirrors(question.memory))
      reason = fmt::format("{} and {} for copies of parts, of {}", format_bytes(needed.memory),
                           format_bytes(needed.mirrors), format_bytes(question.memory));
  }
  reason = broadcast_text(*group, reason);
  if (reason.empty()) return;
  mirror_every = 0;
  if (group->rank() == 0)
    log(LogLevel::info,
        "cluster.memory has no room for copies of parts ({}): a run that loses a worker ends, and "
        "is resumed",
        reason);
}

void check_worker_memory(const MeshTask& task, const TrainerOptions& options) {
  const bool is_given = options.worker_memory > 0;
  if (!is_given && mesh_size(options.strategy_options).workers() > 1) return;
  const MeshQuestion question = question_of(task, options);
  const double needed = needed_memory(task, options, question).memory;
  if (needed <= question.memory * (is_given ? 1 : kDoubt)) return;
  fail(ErrorKind::memory,
       "{}: got {} for worker {}, expected at least {} for its part of the network; try {}",
       is_given ? "cluster.memory" : "memory of this machine", format_bytes(question.memory),
       task.cluster.rank(), format_bytes(needed), what_would_fit(question));
}

}  // namespace artel
