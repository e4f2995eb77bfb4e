// Costs of computing one lane of a network on a kind of machine, by lane size and tensor group
// size.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "artel/graph/ops/shards.h"
#include "artel/plan/graph_costs.h"
#include "artel/plan/machines/machines.h"

namespace artel::plan {

// Bytes of the worker that needs the most memory.
struct MemoryUse {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0, buffers = 0;

  double total() const { return weights + gradients + optimizer + activations + buffers; }
};

// A worker that trains a whole copy of the network.
struct WholeWorker {
  int64_t samples = 1;  // of a lane
  int lanes = 1, threads = 1;
  int copies = 1;              // workers, together
  bool shares_memory = false;  // with other copies
  std::string sharding = "none";
};

// The training that a plan is made for.
struct TrainingTask {
  std::string name;
  int64_t batch = 1;   // global batch size in samples
  int lanes = 8;       // lanes per batch
  int slots = 0;       // optimizer values per parameter
  double steps = 0;    // steps of the whole training; 0 if unknown
  int64_t tokens = 0;  // tokens per sample; 0 if samples are not texts
  // Builds the training graph of one lane of `samples` samples with the given shards. Allocates no
  // tensors.
  std::function<Graph(int64_t samples, const ShardPart& part)> graph;
  // Seconds of each node of a graph on one core. Absent: by the speeds of the machines.
  std::function<std::vector<double>(const Graph& graph)> measure = {};
  // Memory by the plan of the compiled network. Absent: by the sizes of values.
  std::function<MemoryUse(const WholeWorker& worker)> memory = {};
};

struct LaneCosts {
  GraphCosts costs;  // using all cores of a device
  double flops = 0;
  double memory_seconds = 0;  // lower bound by memory bandwidth
  double group_bytes = 0;     // bytes reduced or gathered within a tensor group
  int group_sums = 0;         // number of these collectives
  double parameters = 0;      // parameter count of one worker of a tensor group
  double largest = 0;         // bytes of the largest parameter
};

class LaneCostTable {
 public:
  explicit LaneCostTable(const TrainingTask& task) : task_(task) {}

  // Costs of one worker of a tensor group of `tensor` workers. Null if the layers cannot be divided
  // into that many shards, or if a batch norm needs more than one sample.
  const LaneCosts* find(int64_t samples, int tensor, const MachineKind& kind);

 private:
  std::vector<double> seconds_of_nodes(const Graph& graph, int64_t samples, const ShardPart& part,
                                       const MachineKind& kind) const;

  // Samples, tensor group, and everything about a kind that costs depend on: cores, speed of
  // arithmetic, speed of memory, and speeds of ops.
  using Key = std::tuple<int64_t, int, int64_t, double, double, std::map<std::string, OpSpeed>>;

  const TrainingTask& task_;
  std::map<Key, std::unique_ptr<LaneCosts>> known_;
};

}  // namespace artel::plan
