#include "artel/graph/cost.h"

#include "artel/graph/op.h"

namespace artel {
namespace {

// Rough speeds of one core.
constexpr double kFlopsPerSecond = 60e9;
constexpr double kBytesPerSecond = 8e9;

}  // namespace

size_t bytes_of(const Graph& graph, ValueId id) {
  const TensorType& type = graph.type(id);
  return static_cast<size_t>(type.shape.elements()) * size_of(type.dtype);
}

double estimated_seconds(const Graph& graph, const Node& node) {
  double bytes = 0;
  for (const ValueId id : node.inputs) bytes += static_cast<double>(bytes_of(graph, id));
  for (const ValueId id : node.outputs) bytes += static_cast<double>(bytes_of(graph, id));
  return node_flops(graph, node) / kFlopsPerSecond + bytes / kBytesPerSecond;
}

}  // namespace artel
