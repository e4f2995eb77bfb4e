#include "artel/graph/passes/fuse_forward.h"

#include <algorithm>
#include <map>

#include "artel/graph/op.h"
#include "artel/graph/passes/rewrite.h"

namespace artel {
namespace {

class Fuser {
 public:
  Fuser(const Graph& graph, bool differentiable)
      : graph_(graph), differentiable_(differentiable), uses_(count_uses(graph)) {}

  Graph run() {
    Rewriter rewriter(graph_);
    plan();
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      if (const auto head = fused_.find(id); head != fused_.end()) {
        Node merged = graph_.node(head->second.layer);
        if (node.op->name == "clamp_max") {
          merged.attributes.set("relu", int64_t{1});
          merged.attributes.set("most", node.attributes.number("value"));
        } else {
          merged.attributes.set(node.op->name, int64_t{1});
          if (node.op->name != "relu") merged.attributes.set("slope", int64_t{differentiable_});
        }
        if (head->second.residual >= 0) merged.inputs.push_back(head->second.residual);
        const std::vector<Value> results = rewriter.copy(merged);
        rewriter.replace(node.outputs[0], results[0]);
      } else if (!absorbed_.contains(id)) {
        rewriter.copy(node);
      }
    }
    return rewriter.finish();
  }

 private:
  struct Fused {
    NodeId layer;           // the node that absorbs the others
    ValueId residual = -1;  // the added value; -1 if none
  };

  // The node whose first output is `value`, if no other node uses it and no activation is applied
  // to it; else -1.
  NodeId single_producer(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (producer < 0 || uses_[value] != 1) return -1;
    const Node& node = graph_.node(producer);
    return node.outputs[0] == value && !applied_activation(node) ? producer : -1;
  }

  void plan() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      if (node.op->name == "clamp_max" && !differentiable_) cap(id);
      if (!node.op->activation) continue;
      const NodeId layer = single_producer(node.inputs[0]);
      if (layer < 0) continue;
      const OpDefinition& op = *graph_.node(layer).op;
      if (std::ranges::count(op.applies, node.op->name) > 0)
        absorb(id, {layer}, {layer});
      else if (op.name == "add" && node.op->name == "relu")
        absorb_residual(id, layer);
    }
  }

  // The ReLU after the sum of a batch norm and another value, as in ResNets.
  void absorb_residual(NodeId relu, NodeId sum) {
    for (int side = 1; side >= 0; --side) {
      const ValueId normalised = graph_.node(sum).inputs[side];
      const ValueId residual = graph_.node(sum).inputs[1 - side];
      const NodeId layer = single_producer(normalised);
      if (layer < 0 || graph_.node(layer).op->name != "batch_norm" || absorbed_.contains(layer) ||
          graph_.node(layer).inputs.size() != 3 || graph_.type(residual) != graph_.type(normalised))
        continue;
      return absorb(relu, {layer, residual}, {layer, sum});
    }
  }

  // A cap after the ReLU of a convolution, as in MobileNets. Its gradient would need to know where
  // it was reached.
  void cap(NodeId id) {
    const ValueId x = graph_.node(id).inputs[0];
    const NodeId relu = graph_.value(x).producer;
    const auto fused = relu < 0 || uses_[x] != 1 ? fused_.end() : fused_.find(relu);
    if (fused == fused_.end() || graph_.node(relu).op->name != "relu" ||
        graph_.node(fused->second.layer).op->name != "conv2d")
      return;
    const Fused moved = fused->second;
    fused_.erase(fused);
    absorb(id, moved, {moved.layer, relu});
  }

  void absorb(NodeId head, Fused fused, std::initializer_list<NodeId> nodes) {
    fused_[head] = fused;
    for (const NodeId node : nodes) absorbed_[node] = head;
  }

  const Graph& graph_;
  bool differentiable_;
  std::vector<int> uses_;
  std::map<NodeId, Fused> fused_;
  std::map<NodeId, NodeId> absorbed_;
};

}  // namespace

Graph fuse_forward(const Graph& graph, bool differentiable) {
  return Fuser(graph, differentiable).run();
}

Graph prune(const Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const auto& [name, value] : graph.outputs()) needed[value] = true;
  for (const StateUpdate& update : graph.state_updates()) needed[update.observed] = true;
  for (const GradientOf& g : graph.gradients()) needed[g.gradient] = true;
  std::vector<bool> kept(graph.nodes().size(), false);
  for (auto id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= 0; --id) {
    for (const ValueId output : graph.node(id).outputs) kept[id] = kept[id] || needed[output];
    if (kept[id])
      for (const ValueId input : graph.node(id).inputs) needed[input] = true;
  }
  Rewriter rewriter(graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
    if (kept[id]) rewriter.copy(graph.node(id));
  return rewriter.finish();
}

}  // namespace artel
