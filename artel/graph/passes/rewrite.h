// The skeleton of every pass: copy a graph node by node, changing some on the way.
#pragma once

#include <vector>

#include "artel/graph/graph.h"

namespace artel {

// How often each value is used: by nodes, as an output of the graph, by a state
// update or as a gradient.
std::vector<int> count_uses(const Graph& graph);

// Leaves are copied at once; nodes by `copy`, in an order that respects their inputs.
class Rewriter {
 public:
  explicit Rewriter(const Graph& source);

  Graph& target() { return target_; }
  // The value of the new graph that stands for `old`.
  Value now(ValueId old) { return target_.handle(map_[old]); }
  // Copies a node (whose inputs are values of the source) and maps its outputs.
  std::vector<Value> copy(const Node& node);
  // Maps a value of the source to one of the new graph.
  void replace(ValueId old, Value value) { map_[old] = value.id(); }
  // Copies outputs, state updates and gradients, and returns the new graph.
  Graph finish();

 private:
  const Graph& source_;
  Graph target_;
  std::vector<ValueId> map_;
};

}  // namespace artel
