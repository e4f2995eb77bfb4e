// Forecasts a training: time, memory, and network bytes of a step for one way to divide the work.
//
// Compute time is the sum of op times (op_times.h). Memory and cuts come from the graph
// (graph_costs.h). Communication uses the link model that also selects all-reduce algorithms
// (comm/collectives/calibration.h). All times are closed forms. simulate.h and network/ check them
// by simulation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/plan/forecast/lane_costs.h"

namespace artel::plan {

// Memory of a process before it loads a network and data.
inline constexpr double kProcessBytes = 20 << 20;

// One way to divide the work.
struct Combination {
  int64_t workers = 1;
  int pipeline = 1, tensor = 1;
  std::string sharding = "none";
  std::string strategy = "auto";  // or "ps", with one server per machine
  bool recompute = false;         // recompute activations inside segments
  int64_t samples = 1;            // samples per lane
  std::string schedule = "1f1b";  // pipeline schedule, or "zero_bubble"

  int64_t data() const { return workers / (pipeline * tensor); }
};
// "data 4 x pipeline 2 x tensor 1".
std::string mesh_text(const Combination& combination);
// For example, `data 4 x pipeline 2 x tensor 1, sharding "optimizer", recomputation`.
std::string to_string(const Combination& combination);

// Seconds of a step, by phase.
struct StepParts {
  double compute = 0;   // in the slowest stage
  double again = 0;     // the part of `compute` spent on recomputation
  double exchange = 0;  // communication that does not overlap computation
  double update = 0;    // weight update
  double waiting = 0;   // idle time while other stages or slower machines compute

  double total() const { return compute + exchange + update + waiting; }
};

// `memory_size`: does not fit, or a faster combination of as many workers does not (search.h).
enum class Bottleneck { compute, memory_bandwidth, memory_size, network, waiting };
std::string_view to_string(Bottleneck bottleneck);

struct TrainingForecast {
  Combination combination;
  Pool pool;
  MemoryUse memory;
  StepParts step;
  double least_seconds = 0, most_seconds = 0;  // range of the time of a step
  double flops = 0;                            // per step, all workers together
  double network_bytes = 0;                    // sent by a machine per step
  double inside_bytes = 0;                     // sent by a worker within its machine per step
  int64_t lanes = 1;                           // per copy of the network
  Bottleneck bottleneck = Bottleneck::compute;

  double seconds() const { return step.total(); }
  bool fits() const { return memory.total() <= pool.kind.memory; }
  // Price of `steps` steps; 0 if prices are unknown.
  double price(double steps) const { return pool.price * steps * seconds() / 3600; }
};

class TrainingForecaster {
 public:
  TrainingForecaster(const TrainingTask& task, const Machines& machines)
      : task_(task), machines_(machines), lanes_(task) {}

  // Empty if the combination is not possible.
  std::optional<TrainingForecast> forecast(const Combination& combination);
  // Forecasts for all possible combinations of `workers` workers.
  std::vector<TrainingForecast> all(int64_t workers);

  const TrainingTask& task() const { return task_; }
  const Machines& machines() const { return machines_; }

 private:
  bool is_large(const MachineKind& kind);

  const TrainingTask& task_;
  const Machines& machines_;
  LaneCostTable lanes_;
};

}  // namespace artel::plan
