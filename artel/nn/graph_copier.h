// Networks made of the nodes of others: a network is built aside, and its nodes are copied into the
// graph of another, some of them replaced. Names, random keys and initial values stay the same.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "artel/nn/model.h"

namespace artel::nn {

// A network in a graph of its own.
struct BuiltNetwork {
  Graph graph;
  std::map<std::string, Initialiser> initialisers;
  ValueId input = -1, prediction = -1;
};
// For inputs of this type, batch axis included.
void build_aside(const Model& model, const TensorType& x, bool training,
                 const Build::Trained& trained, BuiltNetwork& built);

// Copies what a value needs, down to values that are given.
class GraphCopier {
 public:
  // Called with each node that was copied, its inputs and its first output; returns what takes the
  // place of that output.
  using Change = std::function<Value(const Node& node, const std::vector<Value>& inputs, Value y)>;

  // Both are borrowed.
  GraphCopier(const BuiltNetwork& from, Build& to, Change change = {})
      : from_(from), to_(to), change_(std::move(change)) {}

  // Stands for a value of the network.
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
