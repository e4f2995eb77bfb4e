#include "artel/nn/summary.h"

#include <set>

#include "artel/graph/op.h"

namespace artel::nn {

Summary summarise(const Model& model, const TensorType& x) {
  Graph graph;
  Build build(graph, true);
  const Value input = graph.input("x", x);
  build.set_input("x", input);
  model.network()(build, input);
  Summary summary;
  std::set<ValueId> counted;
  for (const Node& node : graph.nodes()) {
    SummaryRow row = {node.name, node.op->name, graph.type(node.outputs[0]).shape};
    row.flops = node_flops(graph, node);
    for (const ValueId input : node.inputs)
      if (graph.value(input).kind == ValueKind::parameter && counted.insert(input).second)
        row.parameters += graph.type(input).shape.elements();
    summary.flops += row.flops;
    summary.rows.push_back(std::move(row));
  }
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    summary.parameters += graph.type(id).shape.elements();
  for (const ValueId id : graph.of_kind(ValueKind::state))
    summary.states += graph.type(id).shape.elements();
  return summary;
}

double graph_flops(const Graph& graph) {
  double flops = 0;
  for (const Node& node : graph.nodes()) flops += node_flops(graph, node);
  return flops;
}

}  // namespace artel::nn
