#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"
#include "artel/graph/ops/shared.h"

namespace artel {

std::string random_stream(const Graph& graph, std::string_view op) {
  int64_t earlier = 0;
  for (const Node& node : graph.nodes())
    earlier += node.op->name == op && node.name == graph.scope();
  return graph.scope() + "#" + std::to_string(earlier);
}

// The mask is a function of (seed, step, lane, "stream"), computed again in the backward pass
// instead of stored. "stream" distinguishes several dropouts of one layer.
std::vector<OpDefinition> dropout_ops() {
  const auto infer = [](const InferContext& context) -> std::vector<TensorType> {
    context.check_inputs(1, 1);
    const double p = context.attributes().number("probability");
    context.check(p >= 0 && p < 1, "got probability {}, expected 0 <= p < 1", p);
    return {context.type(0)};
  };
  const auto gradient = [](GradientContext& context) -> std::vector<Value> {
    return {context.graph().add_one("dropout", {context.gradient()}, context.attributes())};
  };
  return {{"dropout", infer, gradient, nullptr}};
}

Value dropout(Value x, double probability) {
  Graph& graph = x.graph();
  return graph.add_one("dropout", {x},
                       {{"probability", probability}, {"stream", random_stream(graph, "dropout")}});
}

}  // namespace artel
