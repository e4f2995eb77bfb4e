#include "artel/nn/frozen_part.h"

#include <set>
#include <vector>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/nn/graph_copier.h"

namespace artel::nn {
namespace {

using Trained = std::function<bool(const std::string&)>;

// A value that a graph has in training and otherwise: which output of which node, counted among
// nodes of the same layer and op.
struct Mark {
  std::string layer, op;
  int occurrence = 0;
  bool operator==(const Mark&) const = default;
};

bool is_random(const Node& node) {
  if (node.op->name == "dropout") return true;
  return node.attributes.has("dropout") && node.attributes.number("dropout") > 0;
}

Mark mark_of(const Graph& graph, NodeId wanted) {
  const Node& node = graph.node(wanted);
  Mark mark = {node.name, node.op->name};
  for (NodeId id = 0; id < wanted; ++id)
    if (graph.node(id).name == mark.layer && graph.node(id).op->name == mark.op) ++mark.occurrence;
  return mark;
}

ValueId find_mark(const Graph& graph, const Mark& mark) {
  int left = mark.occurrence;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.name == mark.layer && node.op->name == mark.op && left-- == 0) return node.outputs[0];
  }
  fail(ErrorKind::internal, "[layer '{}'] {} number {} is gone", mark.layer, mark.op,
       mark.occurrence);
}

TensorType with_batch(const TensorType& sample, int64_t samples) {
  std::vector<int64_t> extents = {samples};
  extents.insert(extents.end(), sample.shape.extents().begin(), sample.shape.extents().end());
  return {sample.dtype, Shape(std::move(extents))};
}

// The values that depend only on frozen layers and are read by trained or random layers.
struct Border {
  std::vector<ValueId> values;
  bool reads_input = false;  // above the border
};

Border border_of(const BuiltNetwork& built, const Trained& trained) {
  const Graph& graph = built.graph;
  std::vector<bool> of_input(graph.values().size()), changes(graph.values().size());
  of_input[built.input] = true;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    changes[id] = trained(graph.value(id).name);
  Border border;
  std::set<ValueId> seen;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    bool fixed = !is_random(node), reads = false;
    for (const ValueId input : node.inputs) {
      fixed = fixed && !changes[input];
      reads = reads || of_input[input];
    }
    for (const ValueId output : node.outputs) {
      changes[output] = !fixed;
      of_input[output] = reads;
    }
    if (fixed) continue;
    for (const ValueId input : node.inputs) {
      if (changes[input] || !of_input[input]) continue;
      if (input == built.input)
        border.reads_input = true;
      else if (seen.insert(input).second)
        border.values.push_back(input);
    }
  }
  return border;
}

}  // namespace

std::variant<FrozenPart, NoFrozenPart> cut_frozen(const Model& model, const TensorType& sample,
                                                  std::function<bool(const std::string&)> trained) {
  BuiltNetwork built;
  build_aside(model, with_batch(sample, 2), true, trained, built);
  const Border border = border_of(built, trained);
  if (border.reads_input)
    return NoFrozenPart{"the first layer that is trained, or random, reads the samples themselves"};
  if (border.values.empty()) return NoFrozenPart{"nothing is trained"};
  if (border.values.size() > 1)
    return NoFrozenPart{
        fmt::format("the layers that are trained read {} values of those that are "
                    "not, expected one",
                    border.values.size())};
  const ValueData& cut = built.graph.value(border.values[0]);
  if (cut.type.dtype != DType::f32 || cut.type.shape.rank() < 2 || cut.type.shape[0] != 2)
    return NoFrozenPart{
        fmt::format("the value at the cut is {}, expected a row of numbers for each "
                    "sample",
                    to_string(cut.type))};
  const Mark mark = mark_of(built.graph, cut.producer);
  require(built.graph.node(cut.producer).outputs[0] == border.values[0], ErrorKind::internal,
          "[layer '{}'] the cut is not at its first output", mark.layer);
  const std::vector<int64_t>& extents = cut.type.shape.extents();
  const auto below = [=](Build& build, Value x) {
    BuiltNetwork whole;
    build_aside(model, x.type(), build.training(), trained, whole);
    GraphCopier copier(whole, build);
    copier.give(whole.input, x);
    return copier.copy(find_mark(whole.graph, mark));
  };
  const auto above = [=](Build& build, Value features) {
    BuiltNetwork whole;
    build_aside(model, with_batch(sample, features.shape()[0]), build.training(), trained, whole);
    GraphCopier copier(whole, build);
    copier.give(find_mark(whole.graph, mark), features);
    return copier.copy(whole.prediction);
  };
  return FrozenPart{.below = Layer("below", below),
                    .above = Layer("above", above),
                    .value = {DType::f32, Shape({extents.begin() + 1, extents.end()})},
                    .layer = mark.layer};
}

}  // namespace artel::nn
