// The base of every pass: copies a graph node by node with changes.
#pragma once

#include <vector>

#include "artel/graph/graph.h"

namespace artel {

// The number of uses of each value: by nodes, outputs, state updates, and gradients.
std::vector<int> count_uses(const Graph& graph);

// The constructor copies the leaves. Call `copy` for the nodes, inputs first.
class Rewriter {
 public:
  explicit Rewriter(const Graph& source);

  Graph& target() { return target_; }
  // The value of the new graph that corresponds to `old`.
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
