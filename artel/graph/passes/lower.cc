#include "artel/graph/passes/lower.h"

#include "artel/graph/differentiate.h"
#include "artel/graph/passes/fuse_forward.h"
#include "artel/graph/passes/recompute.h"
#include "artel/graph/passes/split_layers.h"

namespace artel {
namespace {

void add_gradients(Graph& graph, const Differentiation& wanted) {
  std::vector<Value> parameters;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    if (!wanted.trained || wanted.trained(graph.value(id).whole_name()))
      parameters.push_back(graph.handle(id));
  const Value weight =
      wanted.weight.empty() ? Value() : graph.input(wanted.weight, {DType::f32, Shape{}});
  const std::vector<Value> gradients = differentiate(graph.output("loss"), parameters, weight);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (gradients[i]) graph.set_gradient(parameters[i], gradients[i]);
}

}  // namespace

Graph lower(const Graph& built, const std::optional<Differentiation>& wanted, const ShardPart& part,
            const NormRecomputation& norms) {
  const bool differentiable = wanted.has_value();
  Graph graph = part.shards > 1 ? fuse_forward(split_layers(built, part), differentiable)
                                : fuse_forward(built, differentiable);
  // Prunes in both cases, because the parameters must have one layout.
  if (!wanted) return prune(graph);
  add_gradients(graph, *wanted);
  return recompute_norms(prune(graph), norms);
}

}  // namespace artel
