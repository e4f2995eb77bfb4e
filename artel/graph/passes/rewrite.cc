#include "artel/graph/passes/rewrite.h"

namespace artel {

std::vector<int> count_uses(const Graph& graph) {
  std::vector<int> uses(graph.values().size(), 0);
  for (const Node& node : graph.nodes())
    for (const ValueId input : node.inputs) ++uses[input];
  for (const auto& [name, value] : graph.outputs()) ++uses[value];
  for (const StateUpdate& update : graph.state_updates()) ++uses[update.observed];
  for (const GradientOf& g : graph.gradients()) ++uses[g.gradient];
  return uses;
}

Rewriter::Rewriter(const Graph& source) : source_(source), map_(source.values().size(), -1) {
  for (size_t i = 0; i < source.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (source.value(id).kind != ValueKind::computed) map_[id] = target_.adopt(source, id).id();
  }
}

std::vector<Value> Rewriter::copy(const Node& node) {
  std::vector<Value> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(now(input));
  std::vector<Value> results = target_.adopt(node, inputs);
  for (size_t i = 0; i < node.outputs.size(); ++i) map_[node.outputs[i]] = results[i].id();
  return results;
}

Graph Rewriter::finish() {
  for (const auto& [name, value] : source_.outputs()) target_.set_output(name, now(value));
  for (const StateUpdate& update : source_.state_updates())
    target_.update_state(now(update.state), now(update.observed), update.momentum);
  for (const GradientOf& g : source_.gradients())
    target_.set_gradient(now(g.parameter), now(g.gradient));
  return std::move(target_);
}

}  // namespace artel
