// Builds a network in a separate graph and copies its nodes into another graph, with replacements.
// Names, random keys, and initial values stay the same.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "artel/nn/model.h"

namespace artel::nn {

// A network in its own graph.
struct BuiltNetwork {
  Graph graph;
  std::map<std::string, Initialiser> initialisers;
  ValueId input = -1, prediction = -1;
};
// Builds a network for inputs of type `x`, including the batch axis.
void build_aside(const Model& model, const TensorType& x, bool training,
                 const Build::Trained& trained, BuiltNetwork& built);

// Copies the nodes that a value depends on, down to given values.
class GraphCopier {
 public:
  // Called with each copied node, its inputs, and its first output. Returns the replacement of that
  // output.
  using Change = std::function<Value(const Node& node, const std::vector<Value>& inputs, Value y)>;

  // Borrows both networks.
  GraphCopier(const BuiltNetwork& from, Build& to, Change change = {})
      : from_(from), to_(to), change_(std::move(change)) {}

  // Provides a replacement for a value of the network.
  void give(ValueId id, Value value) { known_[id] = value; }
  Value copy(ValueId id);

 private:
  void mark(NodeId id, std::vector<bool>& needed) const;
  void copy_node(const Node& node);
  Value leaf(ValueId id, const ValueData& value);

  const BuiltNetwork& from_;
  Build& to_;
  Change change_;
  std::map<ValueId, Value> known_;
};

}  // namespace artel::nn
