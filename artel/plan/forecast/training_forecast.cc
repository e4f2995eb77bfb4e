#include "artel/plan/forecast/training_forecast.h"

#include <bit>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/comm/collectives/calibration.h"
#include "artel/comm/collectives/lane_tree.h"
#include "artel/plan/cuts.h"

namespace artel::plan {
namespace {

// Share of a step before the first gradients are complete and can be sent.
constexpr double kForwardShare = 1.0 / 3;
// Range of actual / forecast times for published trainings, see docs/planning.md.
constexpr double kLeastOfFormula = 0.78, kMostOfFormula = 1.54;
constexpr double kLeastFitError = 0.05;
constexpr int kMostStages = 256;
constexpr double kLargeNetwork = 5e9;  // parameters above which only one lane size is tried

bool divides_state(const std::string& sharding) { return sharding != "none"; }
bool divides_gradients(const std::string& sharding) {
  return sharding == "gradients" || sharding == "weights";
}

// Costs of one lane in a pipeline stage.
struct Stage {
  int first = 0, last = 0;  // nodes
  double seconds = 0;
  StageTimes times;
  double transfer_bytes = 0;
  StageMemory memory;
};

// Bytes of activations with recomputation. Each lane in flight holds the values that cross segment
// borders, and one lane holds all values of a segment.
double recomputed_activations(const GraphCosts& costs, const Stage& stage, double in_flight) {
  double least = in_flight * stage.memory.activations;
  const int nodes = stage.last - stage.first;
  for (int segments = 1; segments <= nodes; segments *= 2) {
    double kept = 0, largest = 0;
    for (int i = 0; i < segments; ++i) {
      const int begin = stage.first + nodes * i / segments;
      const int end = stage.first + nodes * (i + 1) / segments;
      if (begin > 0) kept += costs.crossing(begin).values;
      largest = std::max(largest, costs.memory(begin, end).activations);
    }
    least = std::min(least, in_flight * kept + largest);
  }
  return least;
}

std::vector<Stage> stages_of(const GraphCosts& costs, int count) {
  std::vector<double> weights;
  for (int i = 0; i < costs.nodes(); ++i) weights.push_back(costs.times(i, i + 1).total());
  const StageBegins begins = equal_cuts(weights, count);
  std::vector<Stage> stages;
  for (int i = 0; i < count; ++i) {
    const int first = begins[i], last = i + 1 < count ? begins[i + 1] : costs.nodes();
    const StageTimes times = costs.times(first, last);
    const double crossing =
        i + 1 < count ? std::max(costs.crossing(last).values, costs.crossing(last).gradients) : 0;
    stages.push_back({.first = first,
                      .last = last,
                      .seconds = times.total(),
                      .times = times,
                      .transfer_bytes = crossing,
                      .memory = costs.memory(first, last)});
  }
  return stages;
}

int64_t rounded_up(int64_t number, int64_t by) { return (number + by - 1) / by; }

// The lanes that run together on a core: one in a pipeline, otherwise all of the core's lanes,
// which cost as much as one lane with their samples (docs/decisions/0235).
struct Turns {
  int64_t lanes = 1;  // of a copy of the network
  int64_t count = 1, samples = 1;
};

Turns turns_of(const Combination& c, int64_t batch, int64_t cores, bool one_by_one) {
  const int64_t own = rounded_up(batch, c.data()), lanes = rounded_up(own, c.samples);
  if (c.pipeline > 1) return {lanes, lanes, c.samples};
  const int64_t groups = lanes < cores ? 1 : cores;
  if (one_by_one) return {lanes, rounded_up(lanes, groups) * groups, c.samples};
  return {lanes, groups, rounded_up(own, groups)};
}

// Evaluates one combination. `turn` has the costs of a turn.
class Evaluation {
 public:
  Evaluation(const TrainingTask& task, const Turns& turns, const LaneCosts& turn, const Pool& pool,
             const Combination& combination)
      : task_(task),
        turns_(turns),
        turn_(turn),
        c_(combination),
        stages_(stages_of(turn.costs, c_.pipeline)) {
    f_.combination = combination;
    f_.pool = pool;
    f_.lanes = turns.lanes;
    const int64_t part = c_.pipeline * c_.tensor;  // workers per copy of the network
    copies_on_machine_ = std::max<int64_t>(1, pool.workers_per_machine() / part);
  }

  TrainingForecast run() {
    add_compute();
    add_exchange();
    add_memory();
    add_range();
    choose_bottleneck();
    return f_;
  }

 private:
  double cores() const { return static_cast<double>(f_.pool.kind.cores); }
  double data() const { return static_cast<double>(c_.data()); }
  bool pipelined() const { return c_.pipeline > 1; }

  // The link of a machine when `sharing` of its workers use it at the same time.
  comm::LinkCost shared_link(double sharing) const {
    comm::LinkCost link = f_.pool.between;
    link.bandwidth /= std::max(1.0, sharing);
    return link;
  }

  // Seconds of a tensor group's collectives for one lane.
  double group_seconds() const {
    if (c_.tensor == 1) return 0;
    const auto hosts =
        static_cast<size_t>((c_.tensor + f_.pool.kind.devices - 1) / f_.pool.kind.devices);
    const comm::RankCount count = {static_cast<size_t>(c_.tensor), hosts};
    const double bytes = turn_.group_bytes / std::max(1, turn_.group_sums);
    return turn_.group_sums *
           comm::predicted_seconds(f_.pool.links(),
                                   comm::choose_all_reduce(f_.pool.links(), count, bytes), count,
                                   bytes);
  }

  // Time of the slowest of n workers relative to the mean.
  double slowest_factor() const {
    return 1 + f_.pool.kind.variation * expected_largest(f_.pool.machines);
  }

  double turns() const { return static_cast<double>(turns_.count); }

  void add_compute() {
    double slowest = 0, again = 0, transfer = 0, idle = 0;
    for (const Stage& stage : stages_) {
      const double second = c_.recompute ? stage.times.forward : 0;
      const double own = stage.seconds + second;
      transfer = std::max(transfer, transfer_seconds(stage));
      if (own <= slowest) continue;
      slowest = own;
      again = second;
      idle = idle_seconds(stage, second);
    }
    const double groups = group_seconds() / c_.pipeline;
    const double rounds = turns();
    // A message is sent while the next lane is computed.
    const double slot = std::max(slowest + groups, transfer);
    f_.step.compute = rounds * slowest;
    f_.step.again = rounds * again;
    f_.step.exchange = rounds * groups;
    const double filling =
        pipelined() ? (c_.pipeline - 1) * (idle + slot - slowest + 2 * transfer) : 0;
    f_.step.waiting =
        rounds * (slot - slowest - groups) + filling + f_.step.compute * (slowest_factor() - 1);
    f_.flops = turn_.flops * turns() * c_.tensor * data() * (c_.recompute ? 4.0 / 3 : 1);
  }

  // Idle time of a worker, for each worker after it, while the pipeline fills and drains.
  // zero_bubble fills part of it with weight gradients.
  double idle_seconds(const Stage& stage, double second) const {
    if (c_.schedule == "1f1b") return stage.seconds + second;
    const StageTimes& t = stage.times;
    return std::max(0.0, t.forward + second + t.input_gradient - t.weight_gradient);
  }

  double transfer_seconds(const Stage& stage) const {
    if (stage.transfer_bytes == 0) return 0;
    const bool near = c_.pipeline * c_.tensor <= f_.pool.workers_per_machine();
    const comm::LinkCost link = near ? f_.pool.kind.inside : shared_link(c_.tensor);
    return link.latency + stage.transfer_bytes / link.bandwidth;
  }

  double most_trained() const {
    double most = 0;
    for (const Stage& stage : stages_) most = std::max(most, stage.memory.trained);
    return most;
  }

  // Seconds to add `bytes` of gradients over all copies of the network. Also counts sent bytes.
  double copies_seconds(double bytes) {
    if (c_.data() == 1) return 0;
    const auto hosts =
        static_cast<size_t>((c_.data() + copies_on_machine_ - 1) / copies_on_machine_);
    const double sharing = static_cast<double>(f_.pool.workers_per_machine()) /
                           static_cast<double>(copies_on_machine_);
    const comm::Calibration links = {f_.pool.kind.inside, shared_link(sharing)};
    const comm::RankCount count = {static_cast<size_t>(c_.data()), hosts};
    const auto machines = static_cast<double>(hosts);
    if (c_.strategy == "ps") {
      // The server of each machine holds a part of the weights. It receives all gradients of that
      // part and sends the new weights. The machine's workers send and receive as much.
      const double all = 2 * bytes * sharing * static_cast<double>(copies_on_machine_);
      f_.network_bytes += all * (machines - 1) / machines;
      const comm::LinkCost& link = hosts > 1 ? f_.pool.between : f_.pool.kind.inside;
      const double moved = hosts > 1 ? all * (machines - 1) / machines : 2 * bytes;
      return 2 * link.latency + moved / link.bandwidth;
    }
    const double sums = most_sums();
    f_.network_bytes += hosts > 1 ? sharing * (sums + 1) * (machines - 1) / machines * bytes : 0;
    f_.inside_bytes += copies_on_machine_ > 1 ? 2 * bytes : 0;
    return comm::predicted_exact_seconds(links, count, sums, bytes);
  }

  // The largest number of subtrees that the lanes of a machine form. It sends one sum of each.
  double most_sums() const {
    const auto copies = static_cast<int>(c_.data()), own = static_cast<int>(copies_on_machine_);
    const auto lanes =
        static_cast<int>(std::max<int64_t>(c_.data(), rounded_up(task_.batch, c_.samples)));
    size_t most = 1;
    for (int copy = 0; copy < copies; copy += own) {
      const int last = std::min(copy + own, copies) - 1;
      const comm::LaneRange held = {comm::even_lanes(lanes, copies, copy).first,
                                    comm::even_lanes(lanes, copies, last).last};
      most = std::max(most, comm::lane_subtrees(lanes, held).size());
    }
    return static_cast<double>(most);
  }

  // Gradients are sent during the backward pass. New weights are sent after the update, or gathered
  // in both passes with sharded weights.
  void add_exchange() {
    const double trained = most_trained();
    const double exchange = copies_seconds(trained);
    const bool parts = divides_state(c_.sharding), weights = c_.sharding == "weights";
    const double travelling = parts ? exchange / 2 : exchange;
    const double gathering = weights ? exchange : parts ? exchange / 2 : 0;
    if (weights) f_.network_bytes *= 1.5;
    const double hidden = pipelined() ? 0 : (1 - kForwardShare) * f_.step.compute;
    f_.step.exchange += std::max(0.0, travelling - hidden) + gathering;
    const double own = parts ? trained / data() : trained;
    f_.step.update = own * (task_.slots + 2) / f_.pool.kind.memory_bandwidth;
    if (pipelined()) {
      const bool near = c_.pipeline * c_.tensor <= f_.pool.workers_per_machine();
      double bytes = 0;
      for (const Stage& stage : stages_) bytes = std::max(bytes, 2 * stage.transfer_bytes);
      (near ? f_.inside_bytes : f_.network_bytes) += bytes * static_cast<double>(f_.lanes);
    }
    if (c_.tensor > 1)
      f_.inside_bytes +=
          2 * turn_.group_bytes * turns() * (c_.tensor - 1.0) / c_.tensor / c_.pipeline;
  }

  // Turns whose activations a stage holds at the same time.
  double in_flight(int stage) const {
    if (!pipelined()) return std::min(turns(), cores());
    const int behind = c_.schedule == "1f1b" ? stage : 0;
    return std::min(turns(), static_cast<double>(c_.pipeline - behind));
  }

  void add_memory() {
    if (task_.memory && !pipelined() && c_.tensor == 1 && !c_.recompute &&
        turn_.parameters <= kLargeNetwork) {
      f_.memory = task_.memory({.samples = c_.samples,
                                .lanes = static_cast<int>(f_.lanes),
                                .threads = static_cast<int>(f_.pool.kind.cores),
                                .copies = static_cast<int>(c_.data()),
                                .shares_memory = copies_on_machine_ > 1,
                                .sharding = c_.sharding});
      f_.memory.buffers += kProcessBytes;
      return;
    }
    for (int i = 0; i < c_.pipeline; ++i) {
      const MemoryUse use = memory_of(stages_[i], in_flight(i));
      if (use.total() > f_.memory.total()) f_.memory = use;
    }
  }

  MemoryUse memory_of(const Stage& stage, double in_flight) const {
    const double trained = stage.memory.trained, others = 1 - 1 / data();
    MemoryUse use = {.weights = stage.memory.parameters,
                     .optimizer = trained * task_.slots,
                     .buffers = kProcessBytes};
    // Partial sums that wait for their sibling in the lane tree.
    const auto waiting = static_cast<double>(std::bit_width(static_cast<uint64_t>(f_.lanes)));
    const double sums = pipelined() ? 1 + waiting : std::min(in_flight, waiting);
    use.gradients = trained * sums;
    if (divides_state(c_.sharding)) use.optimizer /= data();
    if (divides_gradients(c_.sharding)) {
      use.gradients -= trained * others;
      use.buffers += std::min(2 * turn_.largest + trained / data(), trained * others);
    } else if (copies_on_machine_ > 1 && c_.data() > 1) {
      use.buffers += trained * others;  // workers read each other's gradients
    }
    if (c_.sharding == "weights") {
      use.weights -= trained * others;
      use.buffers += std::min(2 * turn_.largest, trained / 2);
    }
    use.activations = c_.recompute ? recomputed_activations(turn_.costs, stage, in_flight)
                                   : in_flight * stage.memory.activations;
    return use;
  }

  void add_range() {
    const MachineKind& kind = f_.pool.kind;
    const double error = std::max(kLeastFitError, kind.fit_error);
    const bool measured = !kind.ops.empty() || task_.measure;
    const double least = measured ? 1 - error : kLeastOfFormula;
    const double most = measured ? 1 + error : kMostOfFormula;
    f_.least_seconds = f_.seconds() * std::max(0.0, least - kind.variation);
    f_.most_seconds = f_.seconds() * (most + kind.variation);
  }

  void choose_bottleneck() {
    const double of_memory =
        std::min(1.0, turn_.memory_seconds / turn_.costs.times(0, turn_.costs.nodes()).total());
    const double compute = f_.step.compute;
    const double largest = std::max({compute, f_.step.exchange, f_.step.waiting});
    if (!f_.fits())
      f_.bottleneck = Bottleneck::memory_size;
    else if (largest == f_.step.waiting)
      f_.bottleneck = Bottleneck::waiting;
    else if (largest == f_.step.exchange)
      f_.bottleneck = Bottleneck::network;
    else
      f_.bottleneck = of_memory > 0.5 ? Bottleneck::memory_bandwidth : Bottleneck::compute;
  }

  const TrainingTask& task_;
  const Turns turns_;
  const LaneCosts& turn_;
  const Combination& c_;
  std::vector<Stage> stages_;
  int64_t copies_on_machine_ = 1;
  TrainingForecast f_;
};

// Tensor group sizes to try: powers of two that divide the workers, within one machine.
std::vector<int> tensor_sizes(const MachineKind& kind, int64_t workers) {
  std::vector<int> sizes = {1};
  for (int size = 2; size <= kind.devices && workers % size == 0; size *= 2) sizes.push_back(size);
  return sizes;
}

// Lane sizes to try: the size used in training, one sample, and powers of four between them.
std::vector<int64_t> lane_sizes(const TrainingTask& task, int64_t copies, bool large) {
  const int64_t own = (task.batch + copies - 1) / copies;
  const int64_t usual = std::min(own, (task.batch + task.lanes - 1) / task.lanes);
  if (large) return {1};
  std::vector<int64_t> sizes = {usual};
  for (int64_t size = 1; size < usual; size *= 4) sizes.push_back(size);
  return sizes;
}

}  // namespace

std::string mesh_text(const Combination& c) {
  return fmt::format("data {} x pipeline {} x tensor {}", c.data(), c.pipeline, c.tensor);
}

std::string to_string(const Combination& c) {
  std::string text = mesh_text(c);
  if (c.sharding != "none") text += fmt::format(", sharding \"{}\"", c.sharding);
  if (c.recompute) text += ", recomputation";
  if (c.pipeline > 1) text += ", " + c.schedule;
  if (c.strategy != "auto") text += fmt::format(", strategy \"{}\"", c.strategy);
  return text;
}

std::string_view to_string(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::compute:
      return "compute";
    case Bottleneck::memory_bandwidth:
      return "memory bandwidth";
    case Bottleneck::memory_size:
      return "memory size";
    case Bottleneck::network:
      return "network";
    case Bottleneck::waiting:
      return "waiting";
  }
  return "";
}

std::optional<TrainingForecast> TrainingForecaster::forecast(const Combination& c) {
  const int64_t part = int64_t{c.pipeline} * c.tensor;
  if (c.workers < part || c.workers % part != 0 || c.data() > task_.batch) return std::nullopt;
  const bool parts = c.sharding != "none";
  if (parts && (c.data() == 1 || (c.sharding == "weights" && c.pipeline > 1))) return std::nullopt;
  if (c.strategy == "ps" && (part > 1 || parts || c.data() == 1)) return std::nullopt;
  const int64_t own = rounded_up(task_.batch, c.data());
  if (c.samples > own || rounded_up(own, c.samples) < c.pipeline) return std::nullopt;
  const Pool pool = pool_of(machines_, c.workers);
  const Turns turns = turns_of(c, task_.batch, pool.kind.cores, is_large(pool.kind));
  const LaneCosts* const turn = lanes_.find(turns.samples, c.tensor, pool.kind);
  if (turn == nullptr || c.pipeline > turn->costs.nodes()) return std::nullopt;
  // A lane may be too small for a batch norm even if a turn is not.
  if (turns.samples > c.samples && lanes_.find(c.samples, c.tensor, pool.kind) == nullptr)
    return std::nullopt;
  return Evaluation(task_, turns, *turn, pool, c).run();
}

// Every size of lane of a large network would take long to look at.
bool TrainingForecaster::is_large(const MachineKind& kind) {
  return lanes_.find(2, 1, kind)->parameters > kLargeNetwork;
}

std::vector<TrainingForecast> TrainingForecaster::all(int64_t workers) {
  std::vector<TrainingForecast> found;
  const auto add = [&](const Combination& c) {
    if (auto forecast = this->forecast(c)) found.push_back(std::move(*forecast));
  };
  const MachineKind kind = pool_of(machines_, workers).kind;
  const bool large = is_large(kind);
  for (const int tensor : tensor_sizes(kind, workers))
    for (int pipeline = 1; pipeline <= kMostStages && pipeline * tensor <= workers; ++pipeline) {
      if (workers % (pipeline * tensor) != 0) continue;
      const int64_t data = workers / (pipeline * tensor);
      for (const int64_t samples : lane_sizes(task_, data, large))
        for (const bool recompute : {false, true}) {
          for (const char* sharding : {"none", "optimizer", "gradients", "weights"})
            for (const char* schedule : {"1f1b", "zero_bubble"})
              if (pipeline > 1 || schedule == std::string_view("1f1b"))
                add({workers, pipeline, tensor, sharding, "auto", recompute, samples, schedule});
          add({workers, pipeline, tensor, "none", "ps", recompute, samples});
        }
    }
  return found;
}

}  // namespace artel::plan
