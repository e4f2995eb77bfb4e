#include "artel/plan/graph_costs.h"

#include <algorithm>
#include <utility>

#include "artel/base/error.h"
#include "artel/graph/cost.h"
#include "artel/graph/op.h"

namespace artel::plan {

GraphCosts::GraphCosts(const Graph& graph, std::span<const double> seconds) {
  const NodeId forward = graph.forward_end();
  std::vector<int> origins;
  for (NodeId id = 0; id < forward; ++id) {
    layers_.push_back(graph.node(id).name);
    origins.push_back(graph.node(id).origin);
  }
  require(!origins.empty() && origins.front() >= 0 && seconds.size() == graph.nodes().size(),
          ErrorKind::internal, "[pipeline] a graph without gradients, or {} times of {} nodes",
          seconds.size(), graph.nodes().size());
  // Gradients of a pruned forward node belong to the next forward node.
  for (const Node& node : graph.nodes()) {
    const auto at = std::lower_bound(origins.begin(), origins.end(), node.origin);
    place_.push_back(static_cast<int>(std::min<std::ptrdiff_t>(at - origins.begin(), forward - 1)));
  }
  add_times(graph, seconds);
  add_memory(graph);
  add_crossings(graph);
}

void GraphCosts::add_times(const Graph& graph, std::span<const double> seconds) {
  std::vector<StageTimes> own(layers_.size(), {0, 0, 0});
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    StageTimes& times = own[place_[id]];
    switch (graph.node(static_cast<NodeId>(id)).direction) {
      case Direction::forward:
        times.forward += seconds[id];
        break;
      case Direction::backward:
        times.input_gradient += seconds[id];
        break;
      case Direction::weight_gradient:
        times.weight_gradient += seconds[id];
        break;
    }
  }
  sums_.assign(1, {0, 0, 0});
  for (const StageTimes& times : own)
    sums_.push_back({sums_.back().forward + times.forward,
                     sums_.back().input_gradient + times.input_gradient,
                     sums_.back().weight_gradient + times.weight_gradient});
}

StageTimes GraphCosts::times(int first, int last) const {
  return {sums_[last].forward - sums_[first].forward,
          sums_[last].input_gradient - sums_[first].input_gradient,
          sums_[last].weight_gradient - sums_[first].weight_gradient};
}

// The forward node in whose stage a gradient is completed. Rows are added to a table where the rest
// of its gradient is computed (plan/stages.h).
int GraphCosts::finishing_place(const Graph& graph, ValueId gradient) const {
  NodeId producer = graph.value(gradient).producer;
  if (producer >= 0 && graph.node(producer).op->name == "embedding_backward" &&
      graph.node(producer).inputs.size() == 3)
    producer = graph.value(graph.node(producer).inputs[2]).producer;
  return producer < 0 ? 0 : place_[producer];
}

// For each first node, extends the stage node by node. Values used again cost nothing more.
void GraphCosts::add_memory(const Graph& graph) {
  const size_t nodes = layers_.size();
  std::vector<std::vector<ValueId>> parameters(nodes), kept(nodes);
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(static_cast<NodeId>(id));
    for (const ValueId input : node.inputs) {
      const ValueData& value = graph.value(input);
      if (value.kind == ValueKind::parameter || value.kind == ValueKind::state)
        parameters[place_[id]].push_back(input);
      const bool of_forward_pass =
          value.kind == ValueKind::input ||
          (value.producer >= 0 && graph.node(value.producer).direction == Direction::forward);
      if (node.direction != Direction::forward && of_forward_pass)
        kept[place_[id]].push_back(input);
    }
  }
  std::vector<int> finished(graph.values().size(), -1);  // node that completes a gradient
  for (const GradientOf& gradient : graph.gradients())
    finished[gradient.parameter] = finishing_place(graph, gradient.gradient);
  memory_.resize(nodes * nodes);
  for (size_t first = 0; first < nodes; ++first) {
    std::vector<char> seen(graph.values().size(), false);
    StageMemory memory;
    std::vector<ValueId> own;  // parameters completed in this stage or later
    for (size_t last = first; last < nodes; ++last) {
      const auto add = [&](ValueId id, double& sum) {
        if (!seen[id]) sum += static_cast<double>(bytes_of(graph, id));
        return std::exchange(seen[id], 1) == 0;
      };
      for (const ValueId id : parameters[last])
        if (add(id, memory.parameters) && finished[id] >= static_cast<int>(first))
          own.push_back(id);
      std::erase_if(own, [&](ValueId id) {
        if (finished[id] > static_cast<int>(last)) return false;
        memory.trained += static_cast<double>(bytes_of(graph, id));
        return true;
      });
      for (const ValueId id : kept[last]) add(id, memory.activations);
      memory_[first * nodes + last] = memory;
    }
  }
}

const StageMemory& GraphCosts::memory(int first, int last) const {
  return memory_[static_cast<size_t>(first) * layers_.size() + static_cast<size_t>(last) - 1];
}

// Values computed on one side of a cut and used on the other. Excludes inputs of the graph, which
// every stage has, and gradient sums over lanes, which are exchanged after the step.
void GraphCosts::add_crossings(const Graph& graph) {
  const int nodes = this->nodes();
  crossings_.resize(static_cast<size_t>(nodes) + 1);
  std::vector<int> earliest(graph.values().size(), nodes), latest(graph.values().size(), -1);
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (graph.node(static_cast<NodeId>(id)).direction == Direction::weight_gradient) continue;
    for (const ValueId input : graph.node(static_cast<NodeId>(id)).inputs) {
      earliest[input] = std::min(earliest[input], place_[id]);
      latest[input] = std::max(latest[input], place_[id]);
    }
  }
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const NodeId producer = graph.value(id).producer;
    if (producer < 0) continue;
    const auto bytes = static_cast<double>(bytes_of(graph, id));
    const int made = place_[producer];
    if (graph.node(producer).direction == Direction::forward)
      for (int cut = made + 1; cut <= latest[id]; ++cut) crossings_[cut].values += bytes;
    else
      for (int cut = earliest[id] + 1; cut <= made; ++cut) crossings_[cut].gradients += bytes;
  }
}

std::vector<double> GraphCosts::layer_counts() const {
  std::vector<double> counts;
  for (size_t i = 0; i < layers_.size(); ++i)
    counts.push_back(i == 0 || layers_[i] != layers_[i - 1] ? 1 : 0);
  return counts;
}

std::vector<double> GraphCosts::parameter_counts() const {
  std::vector<double> counts;
  for (int i = 0; i < nodes(); ++i)
    counts.push_back(memory(0, i + 1).parameters - (i > 0 ? memory(0, i).parameters : 0));
  return counts;
}

std::vector<double> estimated_node_seconds(const Graph& graph) {
  std::vector<double> seconds;
  for (const Node& node : graph.nodes()) seconds.push_back(estimated_seconds(graph, node));
  return seconds;
}

}  // namespace artel::plan
