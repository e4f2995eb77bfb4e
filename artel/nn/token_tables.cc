#include "artel/nn/token_tables.h"

#include "artel/graph/op.h"

namespace artel::nn {

std::optional<TokenTable> smallest_token_table(const Model& model, const TensorType& sample) {
  std::vector<int64_t> extents = sample.shape.extents();
  extents.insert(extents.begin(), 1);
  const ModelGraph network = inference_graph(model, {sample.dtype, Shape(std::move(extents))});
  const Graph& graph = network.graph;
  std::optional<TokenTable> smallest;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "embedding") continue;
    if (graph.value(node.inputs[0]).kind != ValueKind::input) continue;
    const ValueData& table = graph.value(node.inputs[1]);
    const int64_t rows = table.type.shape[0];
    if (!smallest || rows < smallest->rows)
      smallest = {table.whole_name(), rows, table.type.shape[1]};
  }
  return smallest;
}

}  // namespace artel::nn
