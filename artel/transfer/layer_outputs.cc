#include "artel/transfer/layer_outputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/predict/batches.h"

namespace artel::transfer {
namespace {

bool belongs_to(std::string_view node, std::string_view layer) {
  return node.starts_with(layer) && (node.size() == layer.size() || node[layer.size()] == '.');
}

// All prefixes of a path: "a", "a.b", "a.b.c" for "a.b.c".
std::vector<std::string> scopes_of(const std::string& name) {
  std::vector<std::string> scopes;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
    scopes.push_back(name.substr(0, dot));
  if (!name.empty()) scopes.push_back(name);
  return scopes;
}

[[noreturn]] void fail_unknown_layer(const Graph& graph, const std::string& layer) {
  std::vector<std::string> known, top;
  for (const Node& node : graph.nodes())
    for (const std::string& scope : scopes_of(node.name)) {
      if (std::ranges::find(known, scope) != known.end()) continue;
      known.push_back(scope);
      if (scope.find('.') == scope.npos) top.push_back(scope);
    }
  fail(ErrorKind::not_found, "[layer '{}'] the network has no such layer{}; it begins with {}",
       layer, did_you_mean(layer, known),
       top.size() <= 24 ? join(top, ", ")
                        : fmt::format("{}, ... ({} of them)",
                                      join({top.begin(), top.begin() + 24}, ", "), top.size()));
}

constexpr std::string_view kBefore = "before ";

// The last value that the layer computes, or its input.
Value output_of_layer(Graph& graph, NodeId first, Value x, const std::string& layer) {
  if (layer.starts_with(kBefore)) {
    const std::string next = layer.substr(kBefore.size());
    for (NodeId id = first; id < static_cast<NodeId>(graph.nodes().size()); ++id)
      if (belongs_to(graph.node(id).name, next))
        return id == first ? x : graph.handle(graph.node(id - 1).outputs[0]);
    fail_unknown_layer(graph, next);
  }
  for (auto id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= first; --id)
    if (belongs_to(graph.node(id).name, layer)) return graph.handle(graph.node(id).outputs[0]);
  fail_unknown_layer(graph, layer);
}

// Mask [batch, positions, 1]: 1 at tokens, 0 at padding. Empty for other inputs.
Value token_mask(Value x, Value value) {
  if (x.type().dtype != DType::i32) return {};
  const Shape& shape = x.shape();
  const int64_t positions = shape.back();
  if (value.shape()[1] != positions) return {};
  Value tokens = x;
  if (shape.rank() == 3) tokens = artel::reshape(slice(x, 1, 0, 1), {shape[0], positions});
  return artel::reshape(clamp_max(unary("to_f32", tokens), 1), {shape[0], positions, 1});
}

Value pooled(Value x, Value value, Pooling pooling) {
  const int rank = value.shape().rank();
  if (pooling == Pooling::whole || rank < 3) return value;
  const bool mean = pooling == Pooling::mean;
  if (rank == 4) return reduce(mean ? Reduction::mean : Reduction::max, value, {2, 3});
  const Value mask = rank == 3 ? token_mask(x, value) : Value();
  if (!mask) return reduce(mean ? Reduction::mean : Reduction::max, value, {1});
  constexpr double kNever = 1e9;
  if (!mean)
    return reduce(Reduction::max, add(value, mul_scalar(add_scalar(mask, -1), kNever)), {1});
  return div(sum(mul(value, mask), {1}), clamp_min(sum(mask, {1}), 1));
}

}  // namespace

std::vector<LayerOutput> layer_outputs(const Model& model, const TensorType& sample) {
  Graph graph;
  nn::Build build(graph, false);
  const Value x = graph.input("x", batch_of(sample, 1));
  build.set_input("x", x);
  model.network()(build, x);
  std::map<std::string, NodeId> last;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
    for (const std::string& scope : scopes_of(graph.node(id).name)) last[scope] = id;
  std::vector<std::pair<NodeId, std::string>> order;
  for (const auto& [name, id] : last) order.emplace_back(id, name);
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.size() > b.second.size();
  });
  std::vector<LayerOutput> outputs;
  for (const auto& [id, name] : order) {
    TensorType type = graph.type(graph.node(id).outputs[0]);
    const std::vector<int64_t>& extents = type.shape.extents();
    if (!extents.empty()) type.shape = Shape({extents.begin() + 1, extents.end()});
    outputs.push_back({name, type});
  }
  return outputs;
}

Pooling pooling_by_name(const std::string& name) {
  if (name == "mean") return Pooling::mean;
  if (name == "max") return Pooling::max;
  require(name == "whole", ErrorKind::invalid_argument,
          "pooling: got '{}', expected mean, max or whole", name);
  return Pooling::whole;
}

std::string_view to_string(Pooling pooling) {
  return pooling == Pooling::mean ? "mean" : pooling == Pooling::max ? "max" : "whole";
}

std::string output_name(std::string_view layer) { return fmt::format("layer {}", layer); }

Model ending_at(const Model& model, std::vector<std::string> layers, Pooling pooling) {
  require(!layers.empty(), ErrorKind::invalid_argument, "layers: got none, expected one or more");
  return nn::Layer("features", [=, network = model.network()](nn::Build& build, Value x) {
    Graph& graph = build.graph();
    const auto first = static_cast<NodeId>(graph.nodes().size());
    network(build, x);
    std::vector<Value> values;
    for (const std::string& layer : layers)
      values.push_back(output_of_layer(graph, first, x, layer));
    // The last value in the graph comes after all others.
    size_t last = 0;
    for (size_t i = 0; i < layers.size(); ++i)
      if (values[i].id() > values[last].id()) last = i;
    for (size_t i = 0; i < layers.size(); ++i) {
      values[i] = pooled(x, values[i], pooling);
      graph.set_output(output_name(layers[i]), values[i]);
    }
    return values[last];
  });
}

}  // namespace artel::transfer
