#include "artel/graph/differentiate.h"

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"

namespace artel {

std::vector<Value> differentiate(Value loss, const std::vector<Value>& wrt, Value seed) {
  Graph& graph = loss.graph();
  require(loss.shape().elements() == 1, ErrorKind::shape,
          "the loss has shape {}, expected a scalar; reduce it with mean or sum",
          to_string(loss.shape()));

  // Which values lie on a path from `wrt`.
  std::vector<bool> depends(graph.values().size(), false);
  for (const Value& value : wrt) depends[value.id()] = true;
  const auto forward_nodes = static_cast<NodeId>(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (const ValueId input : node.inputs) any = any || depends[input];
    if (any)
      for (const ValueId output : node.outputs) depends[output] = true;
  }

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
    GradientContext context(graph, node, std::move(output_gradients), needed);
    const std::vector<Value> input_gradients = node.op->gradient(context);
    require(input_gradients.size() == node.inputs.size(), ErrorKind::internal,
            "[layer '{}'] {}: the gradient rule gave {} gradients for {} inputs", node.name,
            node.op->name, input_gradients.size(), node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!needed[i] || !input_gradients[i]) continue;
      const ValueId input = node.inputs[i];
      require(input_gradients[i].shape() == graph.type(input).shape, ErrorKind::internal,
              "[layer '{}'] {}: the gradient of input {} has shape {}, expected {}", node.name,
              node.op->name, i, to_string(input_gradients[i].shape()),
              to_string(graph.type(input).shape));
      gradients[input] =
          gradients[input] ? add(gradients[input], input_gradients[i]) : input_gradients[i];
    }
  }
  std::vector<Value> results;
  for (const Value& value : wrt) results.push_back(gradients[value.id()]);
  return results;
}

}  // namespace artel
