#include "artel/train/strategies/mesh_choice.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/memory_limit.h"
#include "artel/base/text.h"
#include "artel/cluster/worker_name.h"
#include "artel/comm/collectives/benchmark.h"
#include "artel/data/fetch.h"
#include "artel/exec/peak.h"
#include "artel/plan/forecast/own_machine.h"
#include "artel/plan/measure.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/parts/mesh_axes.h"
#include "artel/train/parts/mesh_forecast.h"
#include "artel/train/step/memory_needs.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/tensor.h"

namespace artel {
namespace {

// Forecasts are upper bounds. A network that exceeds a machine's memory by less than this may fit.
constexpr double kDoubt = 1.25;

// Five periods of a quota.
constexpr double kSpeedSeconds = 0.5;
// Speed differences below this share count as equal, because other programs come and go.
constexpr double kSpeedNoise = 0.2;
// Links count as unchanged within this factor.
constexpr double kLinkNoise = 1.5;
// Minimum forecast speedup of another mesh that justifies moving the state.
constexpr double kWorthMoving = 0.1;

int64_t largest_lane(const MeshTask& task) {
  const int lanes = task.stepper.lanes();
  return (task.batch_size + lanes - 1) / lanes;
}

std::vector<int> machines(const Cluster& cluster) {
  const comm::Group* const group = cluster.membership().group.get();
  return group ? group->host_numbers() : std::vector<int>{0};
}

bool spreads_over_machines(const std::vector<int>& hosts) {
  return std::ranges::count(hosts, hosts[0]) < std::ssize(hosts);
}

int slots_of(Stepper& stepper) { return static_cast<int>(stepper.update().memory().size()); }

// This worker's memory if not configured: the machine's, divided by its number of workers.
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
      .speeds = strategy.of<MeshOptions>().speeds,
      .links = strategy.of<MeshOptions>().links,
      .graph = [&stepper, samples](const ShardPart& part) { return stepper.graph(samples, part); },
      .seconds =
          [&stepper, measures](const Graph& graph) {
            return measures ? plan::measured_node_seconds(graph, stepper.choices(),
                                                          data::data_folder() / "costs")
                            : plan::own_node_seconds(graph, data::data_folder());
          }};
}

// Collective. Speeds relative to the fastest worker, by rank. Workers of one machine share its
// cores, so they have equal speeds. Empty if all are about equally fast.
std::vector<double> measured_speeds(const MeshTask& task) {
  comm::Group& group = *task.cluster.membership().group;
  const std::vector<int> hosts = group.host_numbers();
  if (!spreads_over_machines(hosts)) return {};
  group.barrier({.label = "speeds"});  // all measure at the same time, as they will train
  const double own = measure_sustained_flops(task.stepper.pool(), kSpeedSeconds);
  std::vector<double> all(hosts.size());
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "speeds"});
  std::map<int, std::pair<double, int>> of_host;  // sum, workers
  for (size_t i = 0; i < all.size(); ++i) {
    of_host[hosts[i]].first += all[i];
    ++of_host[hosts[i]].second;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [sum, workers] = of_host.at(hosts[i]);
    all[i] = sum / workers;
  }
  const double fastest = std::ranges::max(all);
  for (double& speed : all) speed /= fastest;
  if (std::ranges::min(all) > 1 - kSpeedNoise) return {};
  return all;
}

// Collective. Measures the links between machines. The group's own calibration stays, because it
// selects algorithms, whose order of addition determines bits.
comm::Calibration measured_links(const MeshTask& task) {
  comm::Group& group = *task.cluster.membership().group;
  const comm::Calibration kept = group.calibration();
  if (!spreads_over_machines(group.host_numbers())) return kept;
  const comm::Calibration measured = comm::calibrate(group);
  group.set_calibration(kept);
  return measured;
}

// Ignores small differences, which other traffic causes.
bool is_other_link(const comm::LinkCost& before, const comm::LinkCost& now) {
  const double ratio = now.bandwidth / before.bandwidth;
  return std::max(ratio, 1 / ratio) > kLinkNoise;
}

// "; 118 MB/s between machines".
std::string link_speed(const MeshQuestion& question) {
  if (!spreads_over_machines(question.hosts)) return "";
  return fmt::format("; {}/s between machines", format_bytes(question.links.between.bandwidth));
}

// "; worker 2 on n03 computes at 0.08 of the speed of the fastest".
std::string slow_workers(const comm::Group& group, const std::vector<double>& speeds) {
  std::string text;
  for (int rank = 0; rank < static_cast<int>(speeds.size()); ++rank)
    if (speeds[rank] <= 1 - kSpeedNoise)
      text += fmt::format("; {} computes at {:.2g} of the speed of the fastest",
                          worker_name(group, rank), speeds[rank]);
  return text;
}

// On worker 0: pipeline, tensor, and sharding; or, after a colon, the reason for having no choice.
std::string best_choice(const comm::Group& group, const MeshQuestion& question) {
  const std::vector<MeshForecast> meshes = forecast_meshes(question);
  const std::optional<MeshForecast> best = best_mesh(meshes, question.memory);
  if (!best)
    return fmt::format(
        ":cluster.mesh: got {} workers with {} each, expected more, as no mesh of theirs has room "
        "for the network; try {}",
        question.workers, format_bytes(question.memory), suggest_fit(question));
  log(LogLevel::info, "mesh: {}: {}{}{}", to_string(*best),
      reasons_for(*best, meshes, question.memory), slow_workers(group, question.speeds),
      link_speed(question));
  return fmt::format("{} {} {}", best->size.pipeline, best->size.tensor, best->sharding);
}

// The memory of the configured mesh, and that of copies.
MeshForecast needed_memory(const MeshTask& task, const TrainerOptions& options,
                           const MeshQuestion& question) {
  const MeshSize size = mesh_size(options.strategy_options);
  const auto& sharding = options.strategy_options.of<ShardingOptions>();
  if (size.workers() > 1) return forecast_mesh(question, size, sharding.sharding);
  const int workers = task.cluster.size();
  const int own = (task.stepper.lanes() + workers - 1) / workers;
  const ShardingOptions parts = workers > 1 ? sharding : ShardingOptions();
  const MemoryNeeds needs = memory_needs(task.stepper.program(largest_lane(task)), own,
                                         question.threads, question.slots, workers, parts);
  return {.memory = static_cast<double>(needs.total()) + kProgramBytes,
          .mirrors = question.mirrors ? static_cast<double>(needs.mirrors) : 0};
}

// True if some worker's speed has changed.
bool differ(const std::vector<double>& before, const std::vector<double>& now) {
  const MeshWorkers old = {{}, before}, fresh = {{}, now};
  for (size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const double ratio = fresh.speed(i) / old.speed(i);
    if (std::max(ratio, 1 / ratio) > 1 / (1 - kSpeedNoise)) return true;
  }
  return false;
}

// Collective: all workers adopt worker 0's choice.
void take_best_choice(const MeshTask& task, TrainerOptions& options) {
  comm::Group& group = *task.cluster.membership().group;
  const std::string text = broadcast_text(
      group, group.rank() == 0 ? best_choice(group, question_of(task, options)) : "");
  if (text.starts_with(':')) throw Error(ErrorKind::memory, text.substr(1));
  std::istringstream choice(text);
  choice >> options.strategy_options.of<PipelineOptions>().pipeline >>
      options.strategy_options.of<TensorOptions>().tensor >>
      options.strategy_options.of<ShardingOptions>().sharding;
}

std::string own_worker_name(const Cluster& cluster) {
  const comm::Group* const group = cluster.membership().group.get();
  return group ? worker_name(*group, group->rank()) : "worker 0";
}

}  // namespace

bool chooses_mesh(const Cluster& cluster, const StrategyOptions& options) {
  const auto& mesh = options.of<MeshOptions>();
  return mesh.mesh == "auto" && mesh.chosen && spreads_over_machines(machines(cluster));
}

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
  if (!task.cluster.membership().group) return;
  mesh.speeds = measured_speeds(task);
  mesh.links = measured_links(task);
  take_best_choice(task, options);
}

bool reconsider_mesh(const MeshTask& task, const StrategyOptions& asked, TrainerOptions& options) {
  comm::Group& group = *task.cluster.membership().group;
  TrainerOptions other = options;
  other.strategy_options = asked;
  MeshOptions& mesh = other.strategy_options.of<MeshOptions>();
  mesh.chosen = true;
  mesh.speeds = measured_speeds(task);
  const comm::Calibration links = measured_links(task);
  mesh.links = options.strategy_options.of<MeshOptions>().links;
  if (is_other_link(mesh.links.between, links.between)) mesh.links = links;
  std::string verdict;
  if (group.rank() == 0) {
    const StrategyOptions& present = options.strategy_options;
    const MeshQuestion question = question_of(task, other);
    const MeshSize size = mesh_size(present);
    const bool recut = size.pipeline > 1 && differ(present.of<MeshOptions>().speeds, mesh.speeds);
    const double now =
        forecast_mesh(question, size, present.of<ShardingOptions>().sharding).seconds;
    const auto best = best_mesh(forecast_meshes(question), question.memory);
    if (recut || (best && best->seconds < now * (1 - kWorthMoving))) verdict = "other";
  }
  if (broadcast_text(group, verdict).empty()) return false;
  take_best_choice(task, other);
  options.strategy_options = other.strategy_options;
  return true;
}

double forecast_step(const MeshTask& task, const TrainerOptions& options) {
  const bool measured = std::filesystem::exists(plan::own_machine_file(data::data_folder()));
  if (!measured || task.cluster.rank() != 0 || task.cluster.servers() > 0) return 0;
  MeshQuestion question = question_of(task, options);
  question.seconds = [](const Graph& graph) {
    return plan::own_node_seconds(graph, data::data_folder());
  };
  const auto& sharding = options.strategy_options.of<ShardingOptions>().sharding;
  try {
    return forecast_mesh(question, mesh_size(options.strategy_options), sharding).seconds;
  } catch (const Error& error) {
    // Training does not need it.
    log(LogLevel::debug, "no forecast of a step: {}", error.what());
    return 0;
  }
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
  const MeshQuestion question = question_of(task, options);
  const double network = needed_memory(task, options, question).memory - kProgramBytes;
  const double taken = std::max(kProgramBytes, task.taken);
  if (taken + network / (is_given ? 1 : kDoubt) <= question.memory) return;
  MeshQuestion rest = question;  // remaining memory for the network
  rest.memory -= taken - kProgramBytes;
  const std::string data =
      task.taken > kProgramBytes ? fmt::format(" and {} for its data", format_bytes(taken)) : "";
  fail(ErrorKind::memory,
       "{}: got {} for {}, expected at least {} for its part of the network{}; try {}",
       is_given ? "cluster.memory" : "memory of this machine", format_bytes(question.memory),
       own_worker_name(task.cluster), format_bytes(network + (data.empty() ? taken : 0)), data,
       suggest_fit(rest));
}

}  // namespace artel
