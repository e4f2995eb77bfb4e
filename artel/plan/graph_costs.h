// What the stages of a training graph would cost: time, memory, and bytes over the cuts between
// them.
//
// A cut lies before a forward node, and a stage has the forward nodes between two cuts with all
// that belongs to their gradients (Node::origin).
#pragma once

#include <span>

#include "artel/graph/graph.h"
#include "artel/plan/simulate.h"

namespace artel::plan {

struct StageMemory {
  double parameters = 0;   // bytes of parameters and states, shared ones included
  double trained = 0;      // of these, parameters whose gradient is finished there
  double activations = 0;  // of one lane, kept between its forward and its backward pass

  // With `lanes` lanes under way, gradients of `sums` lanes or sums of lanes, and `slots` numbers
  // that the optimizer keeps for each parameter.
  double total(int lanes, int slots, int sums = 1) const {
    return parameters + trained * (sums + slots) + activations * lanes;
  }
};

class GraphCosts {
 public:
  // `seconds` of each node of the graph, for one lane.
  GraphCosts(const Graph& graph, std::span<const double> seconds);

  int nodes() const { return static_cast<int>(layers_.size()); }
  // Of the forward nodes [first, last) and their gradients.
  StageTimes times(int first, int last) const;
  const StageMemory& memory(int first, int last) const;
  // Of one lane, over the cut before a forward node: values, and their gradients on the way back.
  struct Crossing {
    double values = 0, gradients = 0;
  };
  const Crossing& crossing(int cut) const { return crossings_[cut]; }
  // The layer of each forward node.
  const std::string& layer(int node) const { return layers_[node]; }
  // For cuts that know no times: 1 where a layer begins; bytes of parameters used first here.
  std::vector<double> layer_counts() const;
  std::vector<double> parameter_counts() const;

 private:
  void add_times(const Graph& graph, std::span<const double> seconds);
  int finishing_place(const Graph& graph, ValueId gradient) const;
  void add_memory(const Graph& graph);
  void add_crossings(const Graph& graph);

  std::vector<std::string> layers_;
  std::vector<int> place_;           // of each node of the graph: its forward node
  std::vector<StageTimes> sums_;     // of the nodes before each
  std::vector<StageMemory> memory_;  // of [first, last), by first * nodes + last - 1
  std::vector<Crossing> crossings_;
};

// The time of each node by a model of the processor: for plans without measurements.
std::vector<double> estimated_node_seconds(const Graph& graph);

}  // namespace artel::plan
