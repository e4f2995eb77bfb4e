#include "artel/nn/graph_copier.h"

namespace artel::nn {

void build_aside(const Model& model, const TensorType& batch, bool training,
                 const Build::Trained& trained, BuiltNetwork& built) {
  Build build(built.graph, training, {}, trained);
  const Value x = built.graph.input("x", batch);
  build.set_input("x", x);
  built.input = x.id();
  built.prediction = model.network()(build, x).id();
  built.initialisers = build.initialisers();
}

Value GraphCopier::copy(ValueId id) {
  if (const auto found = known_.find(id); found != known_.end()) return found->second;
  const ValueData& value = from_.graph.value(id);
  if (value.kind != ValueKind::computed) return known_[id] = leaf(id, value);
  // In the order of the nodes, so that the copy is like the whole.
  std::vector<bool> needed(from_.graph.nodes().size(), false);
  mark(value.producer, needed);
  for (NodeId node = 0; node <= value.producer; ++node)
    if (needed[node]) copy_node(from_.graph.node(node));
  return known_.at(id);
}

void GraphCopier::mark(NodeId id, std::vector<bool>& needed) const {
  std::vector<NodeId> stack = {id};
  while (!stack.empty()) {
    const NodeId node = stack.back();
    stack.pop_back();
    if (needed[node]) continue;
    needed[node] = true;
    for (const ValueId input : from_.graph.node(node).inputs) {
      const ValueData& value = from_.graph.value(input);
      if (value.kind == ValueKind::computed && !known_.contains(input))
        stack.push_back(value.producer);
    }
  }
}

void GraphCopier::copy_node(const Node& node) {
  std::vector<Value> inputs;
  for (const ValueId input : node.inputs) {
    const auto found = known_.find(input);
    inputs.push_back(found != known_.end() ? found->second
                                           : known_[input] = leaf(input, from_.graph.value(input)));
  }
  const std::vector<Value> outputs = to_.graph().adopt(node, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) known_[node.outputs[i]] = outputs[i];
  for (const StateUpdate& update : from_.graph.state_updates())
    for (const ValueId output : node.outputs)
      if (update.observed == output)
        to_.graph().update_state(copy(update.state), known_.at(output), update.momentum);
  if (change_) known_[node.outputs[0]] = change_(node, inputs, outputs[0]);
}

Value GraphCopier::leaf(ValueId id, const ValueData& value) {
  const auto initialiser = from_.initialisers.find(value.name);
  switch (value.kind) {
    case ValueKind::parameter:
      return to_.parameter(value.name, value.type.shape, initialiser->second);
    case ValueKind::state: {
      float initial = 0;  // all of a state begin with the same number
      Random unused{0};
      initialiser->second(unused, {1}, {&initial, 1});
      return to_.state(value.name, value.type.shape, initial);
    }
    default:
      return to_.graph().adopt(from_.graph, id);
  }
}

}  // namespace artel::nn
