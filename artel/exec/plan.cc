#include "artel/exec/plan.h"

#include <algorithm>
#include <limits>
#include <map>

#include "artel/base/error.h"
#include "artel/exec/element_groups.h"
#include "artel/exec/memory_plan.h"
#include "artel/graph/op.h"

namespace artel {
namespace {

constexpr int kForever = std::numeric_limits<int>::max();

class Planner {
 public:
  Planner(const Graph& graph, int threads, KernelChoices& choices)
      : graph_(graph), threads_(threads), choices_(choices), layouts_(graph.values().size()) {}

  Plan run() {
    assign_layouts();
    plan_.buffer_of.assign(graph_.values().size(), -1);
    for (size_t i = 0; i < graph_.values().size(); ++i)
      if (graph_.value(static_cast<ValueId>(i)).kind != ValueKind::computed)
        add_buffer(static_cast<ValueId>(i));
    const std::vector<NodeGroup> groups = group_nodes(graph_, layouts_);
    find_visible(groups);
    for (const NodeGroup& group : groups) {
      if (group.elementwise)
        add_elementwise(group.nodes);
      else
        add_node(group.nodes[0]);
    }
    for (const auto& [name, value] : graph_.outputs()) keep(value);
    place_gradients();
    reuse_inputs();
    place_activations(plan_);
    return std::move(plan_);
  }

 private:
  // Chooses a layout for every value: leaves take what their first user wants, others what their
  // kernel gives.
  void assign_layouts() {
    std::vector<bool> fixed(graph_.values().size(), false);
    wanted_.resize(graph_.nodes().size());
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.node(static_cast<NodeId>(i));
      std::vector<Layout> offered;
      for (const ValueId input : node.inputs) offered.push_back(layouts_[input]);
      LayoutChoice choice = layouts_for(node, offered);
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        const ValueId input = node.inputs[k];
        const bool leaf = graph_.value(input).kind != ValueKind::computed;
        if (leaf && !fixed[input]) layouts_[input] = choice.inputs[k];
        fixed[input] = true;
      }
      for (size_t k = 0; k < node.outputs.size(); ++k)
        layouts_[node.outputs[k]] = choice.outputs[k];
      wanted_[i] = std::move(choice);
    }
  }

  LayoutChoice layouts_for(const Node& node, const std::vector<Layout>& offered) const {
    if (is_elementwise(node)) return elementwise_layouts(graph_, node, offered);
    const KernelDefinition& definition = find_kernel(node.op->name);
    if (definition.layouts) return definition.layouts(graph_, node, offered);
    return {std::vector<Layout>(node.inputs.size()), std::vector<Layout>(node.outputs.size())};
  }

  // Which values are used by another step than the one that computes them.
  void find_visible(const std::vector<NodeGroup>& groups) {
    visible_.assign(graph_.values().size(), false);
    std::vector<int> group_of(graph_.nodes().size());
    for (size_t g = 0; g < groups.size(); ++g)
      for (const NodeId id : groups[g].nodes) group_of[id] = static_cast<int>(g);
    for (size_t i = 0; i < graph_.nodes().size(); ++i)
      for (const ValueId input : graph_.node(static_cast<NodeId>(i)).inputs) {
        const NodeId producer = graph_.value(input).producer;
        if (producer < 0 || group_of[producer] != group_of[i]) visible_[input] = true;
      }
    for (const auto& [name, value] : graph_.outputs()) visible_[value] = true;
    for (const StateUpdate& update : graph_.state_updates()) visible_[update.observed] = true;
    for (const GradientOf& g : graph_.gradients()) visible_[g.gradient] = true;
  }

  int add_buffer(ValueId value) {
    Buffer buffer;
    buffer.value = value;
    buffer.layout = layouts_[value];
    const TensorType& type = graph_.type(value);
    buffer.bytes = static_cast<size_t>(type.shape.elements()) * size_of(type.dtype);
    switch (graph_.value(value).kind) {
      case ValueKind::parameter:
      case ValueKind::state:
        buffer.region = Region::parameters;
        break;
      case ValueKind::constant:
        buffer.region = Region::constants;
        break;
      case ValueKind::input:
        buffer.first = 0;
        break;
      case ValueKind::computed:
        break;
    }
    return plan_.buffer_of[value] = append(std::move(buffer));
  }

  int append(Buffer buffer) {
    buffer.root = static_cast<int>(plan_.buffers.size());
    plan_.buffers.push_back(std::move(buffer));
    return plan_.buffers.back().root;
  }

  int now() const { return static_cast<int>(plan_.steps.size()); }

  void use(int buffer) {
    Buffer& b = plan_.buffers[buffer];
    b.last = std::max(b.last, now());
    Buffer& root = plan_.buffers[b.root];
    root.last = std::max(root.last, now());
  }

  void define(int buffer) {
    plan_.buffers[buffer].first = now();
    use(buffer);
  }

  void keep(ValueId value) {
    Buffer& b = plan_.buffers[plan_.buffer_of[value]];
    b.last = plan_.buffers[b.root].last = kForever;
  }

  // The buffer of a value in the wanted layout: its own, or a copy made by a step inserted here.
  int in_layout(ValueId value, const Layout& wanted) {
    const int own = plan_.buffer_of[value];
    const Shape& shape = graph_.type(value).shape;
    if (same_memory(shape, plan_.buffers[own].layout, wanted)) return own;
    for (const auto& [source, copy] : copies_)
      if (source == value && plan_.buffers[copy].layout == wanted) return copy;
    Buffer buffer = plan_.buffers[own];
    buffer.layout = wanted;
    buffer.region = Region::activations;
    const int copy = append(std::move(buffer));
    const Layout from = plan_.buffers[own].layout;
    const DType type = graph_.type(value).dtype;
    PlannedStep step;
    step.op = "change layout";
    step.layer = graph_.value(value).name;
    step.kernel.run = [=](const KernelRun& run) {
      convert_layout(run.pool, shape, type, run.inputs[0], from, run.outputs[0], wanted);
    };
    step.inputs = {own};
    step.outputs = {copy};
    finish(std::move(step));
    copies_.emplace_back(value, copy);
    return copy;
  }

  void finish(PlannedStep step) {
    for (const int output : step.outputs) define(output);
    for (const int input : step.inputs) use(input);
    if (step.kernel.workspace_bytes > 0) {
      Buffer workspace;
      workspace.bytes = step.kernel.workspace_bytes;
      step.workspace = append(std::move(workspace));
      define(step.workspace);
    }
    plan_.steps.push_back(std::move(step));
  }

  void add_elementwise(const std::vector<NodeId>& nodes) {
    // Operands of the full shape are wanted in the group's layout; others are read by strides.
    for (const NodeId id : nodes)
      for (size_t k = 0; k < graph_.node(id).inputs.size(); ++k) {
        const ValueId input = graph_.node(id).inputs[k];
        if (plan_.buffer_of[input] >= 0) in_layout(input, wanted_[id].inputs[k]);
      }
    std::vector<Layout> layouts = layouts_;
    for (const NodeId id : nodes)
      for (size_t k = 0; k < graph_.node(id).inputs.size(); ++k)
        if (plan_.buffer_of[graph_.node(id).inputs[k]] >= 0)
          layouts[graph_.node(id).inputs[k]] = wanted_[id].inputs[k];
    PlannedStep step;
    std::vector<ValueId> inputs, outputs;
    step.kernel = make_elementwise(graph_, nodes, layouts, visible_, inputs, outputs);
    const Node& first = graph_.node(nodes.front());
    step.op = nodes.size() > 1 ? "elementwise" : first.op->name;
    step.layer = first.name;
    for (const NodeId id : nodes) step.flops += node_flops(graph_, graph_.node(id));
    for (const ValueId input : inputs) step.inputs.push_back(in_layout(input, layouts[input]));
    for (const ValueId output : outputs) step.outputs.push_back(add_buffer(output));
    take_place_of_inputs(step);
    finish(std::move(step));
  }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    const LayoutChoice& wanted = wanted_[id];
    PlannedStep step;
    step.op = node.op->name;
    step.layer = node.name;
    step.flops = node_flops(graph_, node);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      step.inputs.push_back(in_layout(node.inputs[k], wanted.inputs[k]));
    if (node.op->name == "reshape") return add_view(node, step.inputs[0]);
    const KernelDefinition& definition = find_kernel(node.op->name);
    step.kernel =
        definition.make({graph_, node, wanted.inputs, wanted.outputs, threads_, choices_});
    for (const ValueId output : node.outputs) step.outputs.push_back(add_buffer(output));
    take_place_of_inputs(step);
    finish(std::move(step));
  }

  // A reshape of a row-major value is the same memory under another shape.
  void add_view(const Node& node, int source) {
    const int view = add_buffer(node.outputs[0]);
    plan_.buffers[view].view_of = source;
    plan_.buffers[view].root = plan_.buffers[source].root;
    plan_.buffers[view].region = plan_.buffers[source].region;
    plan_.buffers[view].first = now();
  }

  void take_place_of_inputs(const PlannedStep& step) {
    for (const auto& [output, input] : step.kernel.in_place)
      candidates_.push_back({step.outputs[output], step.inputs[input], now()});
  }

  // The first node that uses each value, or none. Forward nodes come first, and the gradient of a
  // parameter is complete after the backward pass of its first user.
  std::vector<NodeId> first_users() const {
    std::vector<NodeId> first(graph_.values().size(), -1);
    for (auto id = static_cast<NodeId>(graph_.nodes().size()) - 1; id >= 0; --id)
      for (const ValueId input : graph_.node(id).inputs) first[input] = id;
    return first;
  }

  // Gradients, those of the last layers first, then the observed statistics. A gradient that is a
  // leaf, a view or already placed is copied into its slot. The order follows the forward pass and
  // not this plan's steps: lanes of any size, whatever they recompute, are added place by place.
  void place_gradients() {
    struct Wanted {
      ValueId target, value;
      bool is_state;
    };
    std::vector<Wanted> wanted;
    for (const GradientOf& g : graph_.gradients())
      wanted.push_back({g.parameter, g.gradient, false});
    const std::vector<NodeId> first = first_users();
    std::stable_sort(wanted.begin(), wanted.end(), [&](const Wanted& a, const Wanted& b) {
      return first[a.target] > first[b.target];
    });
    for (const StateUpdate& u : graph_.state_updates())
      wanted.push_back({u.state, u.observed, true});
    size_t offset = 0;
    for (const Wanted& w : wanted) {
      const Layout& layout = layouts_[w.target];
      const int own = plan_.buffer_of[w.value];
      const Buffer& source = plan_.buffers[own];
      const bool in_place = source.region == Region::activations && source.root == own &&
                            graph_.value(w.value).kind == ValueKind::computed &&
                            same_memory(graph_.type(w.value).shape, source.layout, layout);
      const int slot = in_place ? own : copy_to_slot(w.value, layout);
      Buffer& buffer = plan_.buffers[slot];
      buffer.region = Region::gradients;
      buffer.offset = offset;
      const int ready = buffer.last == kForever ? now() : buffer.last;
      plan_.gradients.push_back({w.target, w.is_state, offset, buffer.bytes, ready});
      buffer.last = kForever;
      offset += aligned(buffer.bytes);
    }
    plan_.gradient_bytes = offset;
    // What shares the memory of a gradient lies where it lies.
    for (Buffer& buffer : plan_.buffers) {
      if (plan_.buffers[buffer.root].region != Region::gradients) continue;
      buffer.region = Region::gradients;
      buffer.offset = plan_.buffers[buffer.root].offset;
    }
  }

  int copy_to_slot(ValueId value, const Layout& layout) {
    Buffer buffer = plan_.buffers[plan_.buffer_of[value]];
    const Layout from = buffer.layout;
    const TensorType& type = graph_.type(value);
    buffer.layout = layout;
    const int slot = append(std::move(buffer));
    PlannedStep step;
    step.op = "copy gradient";
    step.kernel.run = [=, shape = type.shape, dtype = type.dtype](const KernelRun& run) {
      convert_layout(run.pool, shape, dtype, run.inputs[0], from, run.outputs[0], layout);
    };
    step.inputs = {plan_.buffer_of[value]};
    step.outputs = {slot};
    finish(std::move(step));
    return slot;
  }

  // Grants the wishes to run in place where the input dies with the step.
  void reuse_inputs() {
    for (const Candidate& c : candidates_) {
      const Buffer &output = plan_.buffers[c.output], &input = plan_.buffers[c.input];
      const Buffer& root = plan_.buffers[input.root];
      if (output.region == Region::activations && root.region == Region::activations &&
          output.root == c.output && root.last == c.step && root.bytes == output.bytes)
        merge(c.output, input.root);
    }
  }

  // All that shared `from`'s memory now shares that of `into`.
  void merge(int from, int into) {
    plan_.buffers[into].last = std::max(plan_.buffers[into].last, plan_.buffers[from].last);
    for (Buffer& buffer : plan_.buffers)
      if (buffer.root == from) buffer.root = into;
  }

  struct Candidate {
    int output, input, step;
  };

  const Graph& graph_;
  int threads_;
  KernelChoices& choices_;
  std::vector<Layout> layouts_;
  std::vector<LayoutChoice> wanted_;
  std::vector<bool> visible_;
  std::vector<std::pair<ValueId, int>> copies_;
  std::vector<Candidate> candidates_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const Graph& graph, int threads, KernelChoices& choices) {
  return Planner(graph, threads, choices).run();
}

}  // namespace artel
