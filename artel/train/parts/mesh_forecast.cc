#include "artel/train/parts/mesh_forecast.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/comm/collectives/balance.h"
#include "artel/graph/op.h"
#include "artel/plan/pipeline.h"
#include "artel/train/parts/mirrors.h"
#include "artel/train/step/stepper.h"
#include "artel/train/strategies/sharded.h"

namespace artel {
namespace {

// Bandwidth of an optimizer's reads and writes of memory, in bytes per second.
constexpr double kUpdateBandwidth = 6e9;
// The share of a step after which the first sums can travel during the remaining computation.
constexpr double kForwardShare = 1.0 / 3;
// A mesh must be faster by this share to justify less simplicity.
constexpr double kWorthwhile = 0.03;
// Maximum number of suggested workers.
constexpr int kMostSuggested = 1024;

double all_reduce_seconds(const MeshQuestion& question, std::vector<int> hosts, double bytes) {
  if (hosts.size() < 2) return 0;
  const auto size = static_cast<size_t>(bytes);
  const comm::Algorithm way = comm::choose_all_reduce(question.links, hosts, size);
  return comm::predicted_seconds(question.links, way, hosts, size);
}

// Forecasts that share data about the network.
class Forecaster {
 public:
  explicit Forecaster(const MeshQuestion& question) : q_(question) {
    if (q_.hosts.empty()) q_.hosts.assign(static_cast<size_t>(q_.workers), 0);
  }

  bool possible(const MeshSize& size, const std::string& sharding) const {
    if (q_.workers % size.workers() != 0 || q_.shards % size.tensor != 0) return false;
    const int data = q_.workers / size.workers();
    if (q_.lanes < data * size.pipeline) return false;
    const ShardingOptions parts = {sharding};
    return !parts.any() || (data > 1 && !(parts.weights() && size.pipeline > 1));
  }

  MeshForecast forecast(const MeshSize& size, const std::string& sharding) {
    MeshForecast mesh = {q_.workers / size.workers(), size, sharding};
    if (size.pipeline > 1)
      add_pipeline(mesh);
    else
      add_lanes(mesh);
    mesh.memory += kProgramBytes;
    return mesh;
  }

 private:
  struct Network {
    Graph graph;
    plan::GraphCosts costs;
    double largest = 0;  // bytes of the largest parameter
  };

  // The network as seen by a worker of a tensor group of that size. Waiting for the others is
  // included.
  const Network& network(const MeshSize& size) {
    const auto found = networks_.find(size.tensor);
    if (found != networks_.end()) return found->second;
    Graph graph = q_.graph({q_.shards, 0, q_.shards / size.tensor});
    std::vector<double> seconds = q_.seconds(graph);
    const std::vector<int> group =
        hosts_of(size, [](const MeshPlace& place) { return place.data == 0 && place.stage == 0; });
    double largest = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      if (size.tensor > 1 && (node.op->name == "shard_sum" || node.op->name == "shard_gather"))
        seconds[i] += q_.threads * all_reduce_seconds(q_, group, bytes_of(graph, node.outputs[0]));
      for (const ValueId input : node.inputs)
        if (graph.value(input).kind == ValueKind::parameter)
          largest = std::max(largest, bytes_of(graph, input));
    }
    plan::GraphCosts costs(graph, seconds);
    return networks_.emplace(size.tensor, Network{std::move(graph), std::move(costs), largest})
        .first->second;
  }

  static double bytes_of(const Graph& graph, ValueId value) {
    const TensorType& type = graph.type(value);
    return static_cast<double>(type.shape.elements()) * static_cast<double>(size_of(type.dtype));
  }

  template <typename Wanted>
  std::vector<int> hosts_of(const MeshSize& size, const Wanted& wanted) const {
    const std::vector<MeshPlace> places = mesh_places({q_.hosts, q_.speeds}, size);
    std::vector<int> hosts;
    for (size_t i = 0; i < places.size(); ++i)
      if (wanted(places[i])) hosts.push_back(q_.hosts[i]);
    return hosts;
  }

  // Seconds for the sums over the copies of a part with that many bytes.
  double exchange_seconds(const MeshSize& size, double bytes) const {
    return all_reduce_seconds(
        q_, hosts_of(size, [](const MeshPlace& p) { return p.stage == 0 && p.tensor == 0; }),
        bytes);
  }

  double update_seconds(const MeshForecast& mesh, double trained) const {
    const double own = mesh.sharding == "none" ? trained : trained / mesh.data;
    return own * (q_.slots + 2) / kUpdateBandwidth;
  }

  // Bytes of a worker with `memory`: `kept` lanes in flight and `sums` sums of gradients.
  double bytes_of(const MeshForecast& mesh, const plan::StageMemory& memory, int kept,
                  int sums) const {
    const ShardingOptions parts = {mesh.sharding};
    const double others = 1 - 1.0 / mesh.data;
    double bytes = memory.total(kept, q_.slots, sums);
    if (parts.any()) bytes -= memory.trained * q_.slots * others;
    if (parts.gradients())
      bytes -= memory.trained * others;
    else  // workers that share memory read each other's parts
      bytes += memory.trained * others;
    if (parts.weights()) bytes -= memory.trained * others;
    return bytes;
  }

  // Adds the copies of a worker's part with `trained` bytes of trained weights.
  void add_mirrors(MeshForecast& mesh, double trained) const {
    const ShardingOptions parts = {mesh.sharding};
    if (!q_.mirrors || (mesh.size.workers() == 1 && !parts.any())) return;
    const double own = trained * (1 + q_.slots) / (parts.any() ? mesh.data : 1);
    mesh.mirrors = mirror_bytes(own, mesh.data == 1 || parts.any());
  }

  double slowest() const { return q_.speeds.empty() ? 1 : std::ranges::min(q_.speeds); }

  // True if lanes move to faster workers (LanePartition::balance).
  static bool balances(const MeshForecast& mesh) {
    return mesh.size.workers() == 1 && !ShardingOptions{mesh.sharding}.weights();
  }

  // The number of lanes of each copy of the network.
  std::vector<int> lanes_of_copies(const MeshForecast& mesh) const {
    const comm::LaneLayout even = comm::LaneLayout::even(q_.lanes, mesh.data);
    if (q_.speeds.empty() || !balances(mesh)) return even.lanes_of_rank;
    std::vector<double> seconds;
    for (const double speed : q_.speeds) seconds.push_back(1 / speed);
    return comm::balanced_lanes(even, seconds, 0, q_.hosts).lanes_of_rank;
  }

  // Computing time of the slowest copy, given the seconds of a lane on one thread.
  double computing_seconds(const MeshForecast& mesh, const std::vector<int>& lanes, double lane,
                           double sums_per_lane) const {
    double longest = 0;
    for (size_t copy = 0; copy < lanes.size(); ++copy) {
      const int beside = Stepper::side_by_side(lanes[copy], q_.threads, sums_per_lane);
      const int rounds = (lanes[copy] + beside - 1) / beside;
      const double speed = balances(mesh) && !q_.speeds.empty() ? q_.speeds[copy] : slowest();
      longest = std::max(longest, rounds * lane / (beside > 1 ? 1 : q_.threads) / speed);
    }
    return longest;
  }

  void add_lanes(MeshForecast& mesh) {
    const Network& net = network(mesh.size);
    const double lane = net.costs.times(0, net.costs.nodes()).total();
    const std::vector<int> lanes = lanes_of_copies(mesh);
    const int own = std::ranges::max(lanes);
    const plan::StageMemory& memory = net.costs.memory(0, net.costs.nodes());
    const double sums = memory.trained / std::max(1.0, memory.activations);
    const double computing = computing_seconds(mesh, lanes, lane, sums);
    const double exchange = exchange_seconds(mesh.size, memory.trained);
    const ShardingOptions parts = {mesh.sharding};
    const double travelling = parts.any() ? exchange / 2 : exchange;
    // New weights are sent after the update or in both passes. Workers that share a machine's
    // memory cannot overlap that with computing.
    const double gathering = parts.weights() ? exchange : parts.any() ? exchange / 2 : 0;
    mesh.seconds = std::max(computing, kForwardShare * computing + travelling) + gathering +
                   update_seconds(mesh, memory.trained);
    mesh.memory = bytes_of(mesh, memory, own, Stepper::sums_in_memory(own, q_.threads, sums));
    // At most two of the largest buckets of sharded weights or gradients are resident. As many
    // gradients as the worker's own part stay, too.
    const double own_gradients = memory.trained / mesh.data;
    if (parts.gradients())
      mesh.memory += std::min(2 * net.largest + own_gradients, memory.trained - own_gradients);
    if (parts.weights()) mesh.memory += std::min(2 * net.largest, memory.trained / 2);
    add_mirrors(mesh, memory.trained);
  }

  void add_pipeline(MeshForecast& mesh) {
    const Network& net = network(mesh.size);
    const int workers = mesh.size.pipeline;
    const int each =
        q_.schedule != "auto" && plan::schedule_kind(q_.schedule).several_stages ? 2 : 1;
    const std::vector<int> hosts =
        hosts_of(mesh.size, [](const MeshPlace& p) { return p.data == 0 && p.tensor == 0; });
    const bool near = std::ranges::count(hosts, hosts[0]) == std::ssize(hosts);
    const comm::LinkCost& link = near ? q_.links.inside : q_.links.between;
    std::vector<double> speeds = stage_speeds({q_.hosts, q_.speeds}, mesh.size);
    for (double& speed : speeds) speed *= q_.threads;
    const int lanes = (q_.lanes + mesh.data - 1) / mesh.data;  // of the busiest copy
    plan::PipelineRequest request = {.shape = {workers, workers * each, lanes},
                                     .schedule = q_.schedule,
                                     .speeds = std::move(speeds),
                                     .bandwidth = link.bandwidth,
                                     .latency = link.latency,
                                     .slots = q_.slots,
                                     .meets = true};
    const plan::PipelinePlan plan = fitting_plan(net.costs, mesh, request);
    mesh.schedule = plan.schedule.name;
    mesh.memory = memory_of(net.costs, mesh, plan);
    double trained = 0;
    std::vector<double> of_worker(static_cast<size_t>(workers));
    for (const plan::PlannedStage& stage : plan.stages) {
      const double of_stage = net.costs.memory(stage.first, stage.last).trained;
      trained = std::max(trained, of_stage);
      of_worker[stage.worker] += of_stage;
    }
    add_mirrors(mesh, std::ranges::max(of_worker));
    mesh.seconds = plan.simulation.seconds + exchange_seconds(mesh.size, trained) +
                   update_seconds(mesh, trained);
  }

  // The fastest plan that fits into the memory shared by copies, or the fastest of all.
  plan::PipelinePlan fitting_plan(const plan::GraphCosts& costs, const MeshForecast& mesh,
                                  plan::PipelineRequest request) const {
    plan::PipelinePlan fastest = plan::plan_pipeline(costs, request);
    const double most = fastest.most_memory();
    const double spared = most - (memory_of(costs, mesh, fastest) + kProgramBytes);
    if (q_.memory <= 0 || most - spared <= q_.memory) return fastest;
    request.memory = q_.memory + spared;
    if (request.memory <= 0) return fastest;
    try {
      return plan::plan_pipeline(costs, request);
    } catch (const Error&) {
      return fastest;  // nothing fits
    }
  }

  double memory_of(const plan::GraphCosts& costs, const MeshForecast& mesh,
                   const plan::PipelinePlan& plan) const {
    const std::vector<int> kept = plan::most_kept(plan.schedule);
    // Sums that wait for their neighbours in the tree, and the sum of a lane whose tied rows are
    // pending.
    const int sums =
        1 + static_cast<int>(std::bit_width(static_cast<unsigned>(plan.schedule.shape.lanes)));
    std::vector<double> of_worker(static_cast<size_t>(mesh.size.pipeline));
    const int each = plan.schedule.shape.stages_of_a_worker();
    for (const plan::PlannedStage& stage : plan.stages)
      of_worker[stage.worker] += bytes_of(mesh, costs.memory(stage.first, stage.last),
                                          (kept[stage.worker] + each - 1) / each, sums);
    return *std::max_element(of_worker.begin(), of_worker.end());
  }

  MeshQuestion q_;
  std::map<int, Network> networks_;  // by size of a tensor group
};

std::string percent_slower(const MeshForecast& one, const MeshForecast& best) {
  return fmt::format("{:.0f} % slower", 100 * (one.seconds / best.seconds - 1));
}

}  // namespace

std::string to_string(const MeshForecast& mesh) {
  return fmt::format(
      "data {} x pipeline {} x tensor {}{}", mesh.data, mesh.size.pipeline, mesh.size.tensor,
      mesh.sharding == "none" ? "" : fmt::format(", sharding \"{}\"", mesh.sharding));
}

std::vector<MeshForecast> forecast_meshes(const MeshQuestion& question) {
  Forecaster forecaster(question);
  std::vector<std::string> shardings = {"none", "optimizer", "gradients", "weights"};
  if (!question.sharding.empty()) shardings = {question.sharding};
  std::vector<MeshForecast> meshes;
  for (int pipeline = 1; pipeline <= question.workers; ++pipeline)
    for (int tensor = 1; tensor <= question.workers; ++tensor)
      for (const std::string& sharding : shardings)
        if (forecaster.possible({pipeline, tensor}, sharding)) try {
            meshes.push_back(forecaster.forecast({pipeline, tensor}, sharding));
          } catch (const Error& error) {
            // More stages than ops, or heads that the shards do not divide: no such mesh.
            if (error.kind() != ErrorKind::invalid_argument) throw;
          }
  return meshes;
}

MeshForecast forecast_mesh(const MeshQuestion& question, const MeshSize& size,
                           const std::string& sharding) {
  return Forecaster(question).forecast(size, sharding);
}

bool MeshForecast::fits_with_mirrors(double limit) const {
  if (limit <= 0) return true;
  return memory + mirrors <= limit && has_room_for_mirrors(mirrors, limit);
}

std::optional<MeshForecast> best_mesh(const std::vector<MeshForecast>& meshes, double memory) {
  const auto fastest = [&](const auto& fits) -> std::optional<MeshForecast> {
    double least = 0;
    for (const MeshForecast& mesh : meshes)
      if (fits(mesh) && (least == 0 || mesh.seconds < least)) least = mesh.seconds;
    for (const MeshForecast& mesh : meshes)
      if (fits(mesh) && mesh.seconds <= least * (1 + kWorthwhile)) return mesh;
    return std::nullopt;
  };
  const auto best = fastest([&](const MeshForecast& m) { return m.fits_with_mirrors(memory); });
  return best ? best : fastest([&](const MeshForecast& mesh) { return mesh.fits(memory); });
}

std::string reasons_for(const MeshForecast& best, const std::vector<MeshForecast>& meshes,
                        double memory) {
  std::string text = fmt::format("{:.3g} ms a step and {} a worker by forecast", 1e3 * best.seconds,
                                 format_bytes(best.memory));
  if (best.mirrors > 0)
    text += best.fits_with_mirrors(memory)
                ? fmt::format(", {} more for copies of parts", format_bytes(best.mirrors))
                : fmt::format(", without the {} of copies of parts", format_bytes(best.mirrors));
  std::vector<std::string> others;
  int too_large = 0;
  for (const MeshForecast& mesh : meshes) {
    if (!mesh.fits(memory)) ++too_large;
    const bool is_best = mesh.size == best.size && mesh.sharding == best.sharding;
    if (is_best || mesh.sharding != best.sharding || !mesh.fits(memory)) continue;
    others.push_back(fmt::format("{} would be {}", to_string(mesh),
                                 mesh.seconds < best.seconds * (1 + kWorthwhile)
                                     ? "no faster"
                                     : percent_slower(mesh, best)));
  }
  if (!others.empty()) text += "; " + join(others, ", ");
  if (too_large > 0)
    text += fmt::format("; {} of {} meshes need more than {}", too_large, meshes.size(),
                        format_bytes(memory));
  return text;
}

std::string suggest_fit(MeshQuestion question) {
  question.sharding.clear();
  question.hosts.clear();
  question.speeds.clear();
  double least = 0;
  for (int workers = question.workers; workers <= std::min(kMostSuggested, question.lanes * 2);
       workers = workers == question.workers ? std::bit_ceil(static_cast<unsigned>(workers) + 1)
                                             : workers * 2) {
    MeshQuestion more = question;
    more.workers = workers;
    const std::vector<MeshForecast> meshes = forecast_meshes(more);
    for (const MeshForecast& mesh : meshes)
      if (least == 0 || mesh.memory < least) least = mesh.memory;
    const std::optional<MeshForecast> best = best_mesh(meshes, question.memory);
    if (!best) continue;
    std::vector<std::string> settings;
    if (best->size.pipeline > 1)
      settings.push_back(fmt::format("cluster.pipeline = {}", best->size.pipeline));
    if (best->size.tensor > 1)
      settings.push_back(fmt::format("cluster.tensor = {}", best->size.tensor));
    if (best->sharding != "none")
      settings.push_back(fmt::format("cluster.sharding = \"{}\"", best->sharding));
    return fmt::format("-n {} with {} (about {} each)", workers, join(settings, " and "),
                       format_bytes(best->memory));
  }
  return fmt::format("workers with {}, or smaller lanes (cluster.lanes)", format_bytes(least));
}

}  // namespace artel
