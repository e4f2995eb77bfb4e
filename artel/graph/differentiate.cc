#include "artel/graph/differentiate.h"

#include <algorithm>
#include <set>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"

namespace artel {
namespace {

// For each value, true if it depends on an input of the graph. Values computed only from parameters
// do not.
std::vector<bool> depending_on_inputs(const Graph& graph) {
  std::vector<bool> depends(graph.values().size(), false);
  for (const ValueId id : graph.of_kind(ValueKind::input)) depends[id] = true;
  for (const Node& node : graph.nodes())
    if (std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](ValueId id) { return depends[id]; }))
      for (const ValueId output : node.outputs) depends[output] = true;
  return depends;
}

// Sets the direction of the nodes from `begin` on, which one gradient rule has added. Nodes that
// contribute to `passed_on` belong to the backward pass.
void set_directions(Graph& graph, NodeId begin, const std::vector<Value>& passed_on) {
  std::set<ValueId> needed;
  for (const Value& value : passed_on) needed.insert(value.id());
  for (auto id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= begin; --id) {
    const Node& node = graph.node(id);
    const bool backward = std::any_of(node.outputs.begin(), node.outputs.end(),
                                      [&](ValueId output) { return needed.contains(output); });
    graph.set_direction(id, backward ? Direction::backward : Direction::weight_gradient);
    if (backward) needed.insert(node.inputs.begin(), node.inputs.end());
  }
}

// The sum of two gradients of a value with several users. Gradient rows of a table that has another
// use, such as the last layer of a language model, are added to the existing gradient. This avoids
// a second table, and pipeline stages exchange only rows.
Value add_gradient(Value so_far, Value next) {
  Graph& graph = next.graph();
  const NodeId producer = graph.value(next.id()).producer;
  if (producer < 0 || graph.node(producer).op->name != "embedding_backward" ||
      graph.node(producer).inputs.size() != 2)
    return add(so_far, next);
  const Node rows = graph.node(producer);
  return graph.add_one("embedding_backward",
                       {graph.handle(rows.inputs[0]), graph.handle(rows.inputs[1]), so_far},
                       rows.attributes);
}

}  // namespace

std::vector<Value> differentiate(Value loss, const std::vector<Value>& wrt, Value seed) {
  Graph& graph = loss.graph();
  require(loss.shape().elements() == 1, ErrorKind::shape,
          "the loss has shape {}, expected a scalar; reduce it with mean or sum",
          to_string(loss.shape()));

  // Marks the values that depend on `wrt`.
  std::vector<bool> depends(graph.values().size(), false);
  for (const Value& value : wrt) depends[value.id()] = true;
  const auto forward_nodes = static_cast<NodeId>(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (const ValueId input : node.inputs) any = any || depends[input];
    if (any)
      for (const ValueId output : node.outputs) depends[output] = true;
  }
  for (NodeId id = 0; id < forward_nodes; ++id) graph.set_origin(id, id);

  const std::vector<bool> by_input = depending_on_inputs(graph);
  std::vector<Value> gradients(graph.values().size());
  if (!seed) {
    Tensor one(loss.shape());
    for (float& x : one.values<float>()) x = 1;
    seed = graph.constant("one", std::move(one));
  }
  gradients[loss.id()] = seed;
  for (NodeId id = forward_nodes - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    std::vector<Value> output_gradients;
    bool reached = false;
    for (const ValueId output : node.outputs) {
      output_gradients.push_back(gradients[output]);
      reached = reached || gradients[output];
    }
    std::vector<bool> needed;
    bool any = false;
    for (const ValueId input : node.inputs) {
      needed.push_back(depends[input] && is_floating(graph.type(input).dtype));
      any = any || needed.back();
    }
    if (!reached || !any) continue;
    require(static_cast<bool>(node.op->gradient), ErrorKind::unsupported,
            "[layer '{}'] {} has no gradient rule", node.name, node.op->name);
    const Graph::Scope scope(graph, node.name);
    const auto begin = static_cast<NodeId>(graph.nodes().size());
    GradientContext context(graph, node, std::move(output_gradients), needed);
    const std::vector<Value> input_gradients = node.op->gradient(context);
    require(input_gradients.size() == node.inputs.size(), ErrorKind::internal,
            "[layer '{}'] {}: the gradient rule gave {} gradients for {} inputs", node.name,
            node.op->name, input_gradients.size(), node.inputs.size());
    std::vector<Value> passed_on;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!needed[i] || !input_gradients[i]) continue;
      const ValueId input = node.inputs[i];
      require(input_gradients[i].shape() == graph.type(input).shape, ErrorKind::internal,
              "[layer '{}'] {}: the gradient of input {} has shape {}, expected {}", node.name,
              node.op->name, i, to_string(input_gradients[i].shape()),
              to_string(graph.type(input).shape));
      gradients[input] = gradients[input] ? add_gradient(gradients[input], input_gradients[i])
                                          : input_gradients[i];
      if (by_input[input]) passed_on.push_back(gradients[input]);
    }
    set_directions(graph, begin, passed_on);
    for (auto added = begin; added < static_cast<NodeId>(graph.nodes().size()); ++added)
      graph.set_origin(added, id);
  }
  std::vector<Value> results;
  for (const Value& value : wrt) results.push_back(gradients[value.id()]);
  return results;
}

}  // namespace artel
