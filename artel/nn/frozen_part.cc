#include "artel/nn/frozen_part.h"

#include <map>
#include <set>
#include <vector>

#include "artel/base/error.h"
#include "artel/graph/op.h"

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

struct Built {
  Graph graph;
  std::map<std::string, Initialiser> initialisers;
  ValueId input = -1, prediction = -1;
};

void build_whole(const Model& model, const TensorType& batch, bool training, const Trained& trained,
                 Built& built) {
  Build build(built.graph, training, {}, trained);
  const Value x = built.graph.input("x", batch);
  build.set_input("x", x);
  built.input = x.id();
  built.prediction = model.network()(build, x).id();
  built.initialisers = build.initialisers();
}

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

// Copies the nodes that `wanted` needs into the graph of a build, down to values that are given.
class Copier {
 public:
  Copier(const Built& from, Build& to) : from_(from), to_(to) {}

  void give(ValueId id, Value value) { known_[id] = value; }

  Value copy(ValueId id) {
    if (const auto found = known_.find(id); found != known_.end()) return found->second;
    const ValueData& value = from_.graph.value(id);
    if (value.kind != ValueKind::computed) return known_[id] = leaf(id, value);
    // In the order of the nodes, so that the copy is like the whole.
    std::vector<bool> needed(from_.graph.nodes().size(), false);
    mark(value.producer, needed);
    for (NodeId node = 0; node <= value.producer; ++node)
      if (needed[node]) copy_node(from_.graph.node(node));
    return known_.at(id);
  }

 private:
  void mark(NodeId id, std::vector<bool>& needed) const {
    std::vector<NodeId> stack = {id};
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      if (needed[node]) continue;
      needed[node] = true;
      for (const ValueId input : from_.graph.node(node).inputs) {
        const ValueData& value = from_.graph.value(input);
        if (value.kind == ValueKind::computed && !known_.contains(input))
          stack.push_back(value.producer);
      }
    }
  }
  void copy_node(const Node& node) {
    std::vector<Value> inputs;
    for (const ValueId input : node.inputs) {
      const auto found = known_.find(input);
      inputs.push_back(found != known_.end()
                           ? found->second
                           : known_[input] = leaf(input, from_.graph.value(input)));
    }
    const std::vector<Value> outputs = to_.graph().adopt(node, std::move(inputs));
    for (size_t i = 0; i < outputs.size(); ++i) known_[node.outputs[i]] = outputs[i];
    for (const StateUpdate& update : from_.graph.state_updates())
      for (const ValueId output : node.outputs)
        if (update.observed == output)
          to_.graph().update_state(copy(update.state), known_.at(output), update.momentum);
  }
  Value leaf(ValueId id, const ValueData& value) {
    const auto initialiser = from_.initialisers.find(value.name);
    switch (value.kind) {
      case ValueKind::parameter:
        return to_.parameter(value.name, value.type.shape, initialiser->second);
      case ValueKind::state: {
        float initial = 0;  // all of a state begin with the same number
        Random unused{0};
        initialiser->second(unused, {1}, {&initial, 1});
        return to_.state(value.name, value.type.shape, initial);
      }
      default:
        return to_.graph().adopt(from_.graph, id);
    }
  }

  const Built& from_;
  Build& to_;
  std::map<ValueId, Value> known_;
};

// The values that depend on the input alone and are read by what is trained or random.
struct Border {
  std::vector<ValueId> values;
  bool reads_input = false;  // above the border
};

Border border_of(const Built& built, const Trained& trained) {
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
  Built built;
  build_whole(model, with_batch(sample, 2), true, trained, built);
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
    Built whole;
    build_whole(model, x.type(), build.training(), trained, whole);
    Copier copier(whole, build);
    copier.give(whole.input, x);
    return copier.copy(find_mark(whole.graph, mark));
  };
  const auto above = [=](Build& build, Value features) {
    Built whole;
    build_whole(model, with_batch(sample, features.shape()[0]), build.training(), trained, whole);
    Copier copier(whole, build);
    copier.give(find_mark(whole.graph, mark), features);
    return copier.copy(whole.prediction);
  };
  return FrozenPart{.below = Layer("below", below),
                    .above = Layer("above", above),
                    .value = {DType::f32, Shape({extents.begin() + 1, extents.end()})},
                    .layer = mark.layer};
}

}  // namespace artel::nn
