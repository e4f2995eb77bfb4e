// Costs of the stages of a training graph: time, memory, and bytes sent over the cuts between them.
//
// A cut lies before a forward node. A stage consists of the forward nodes between two cuts and the
// nodes of their gradients (Node::origin).
#pragma once

#include <span>

#include "artel/graph/graph.h"
#include "artel/plan/simulate.h"

namespace artel::plan {

struct StageMemory {
  double parameters = 0;   // bytes of parameters and states, including shared ones
  double trained = 0;      // bytes of parameters whose gradient is completed in this stage
  double activations = 0;  // bytes of one lane, held from its forward to its backward pass

  // Bytes with `lanes` lanes in flight, `sums` copies of the gradients, and `slots` optimizer
  // values per parameter.
  double total(int lanes, int slots, int sums = 1) const {
    return parameters + trained * (sums + slots) + activations * lanes;
  }
};

class GraphCosts {
 public:
  // `seconds` is the time of each node of the graph for one lane.
  GraphCosts(const Graph& graph, std::span<const double> seconds);

  int nodes() const { return static_cast<int>(layers_.size()); }
  // Costs of the forward nodes [first, last) and their gradients.
  StageTimes times(int first, int last) const;
  const StageMemory& memory(int first, int last) const;
  // Bytes of one lane sent over a cut: values forward, gradients backward.
  struct Crossing {
    double values = 0, gradients = 0;
  };
  const Crossing& crossing(int cut) const { return crossings_[cut]; }
  // The layer of each forward node.
  const std::string& layer(int node) const { return layers_[node]; }
  // Weights for cuts without times: 1 at the first node of a layer, or bytes of parameters first
  // used by the node.
  std::vector<double> layer_counts() const;
  std::vector<double> parameter_counts() const;

 private:
  void add_times(const Graph& graph, std::span<const double> seconds);
  int finishing_place(const Graph& graph, ValueId gradient) const;
  void add_memory(const Graph& graph);
  void add_crossings(const Graph& graph);

  std::vector<std::string> layers_;
  std::vector<int> place_;           // index of the forward node of each graph node
  std::vector<StageTimes> sums_;     // prefix sums over forward nodes
  std::vector<StageMemory> memory_;  // of [first, last), at first * nodes + last - 1
  std::vector<Crossing> crossings_;
};

// Estimates the time of each node by a model of the processor, for plans without measurements.
std::vector<double> estimated_node_seconds(const Graph& graph);

}  // namespace artel::plan
