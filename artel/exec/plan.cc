#include "artel/exec/plan.h"

#include <algorithm>
#include <map>

#include "artel/base/error.h"
#include "artel/exec/element_groups.h"
#include "artel/exec/memory_plan.h"
#include "artel/graph/op.h"

namespace artel {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, int threads, KernelChoices& choices, Device& device,
          const LaneCounts& lanes)
      : graph_(graph),
        threads_(threads),
        choices_(choices),
        lanes_(lanes),
        layouts_(graph.values().size()) {
    for (const Node& node : graph.nodes()) {
      devices_.push_back(has_kernel(device, node.op->name) ? &device : &cpu());
      fusible_.push_back(is_elementwise(node) && devices_.back() == &cpu());
    }
  }

  Plan run() {
    assign_layouts();
    plan_.buffer_of.assign(graph_.values().size(), -1);
    for (size_t i = 0; i < graph_.values().size(); ++i)
      if (graph_.value(static_cast<ValueId>(i)).kind != ValueKind::computed)
        add_buffer(static_cast<ValueId>(i), cpu());
    const std::vector<NodeGroup> groups = group_nodes(graph_, layouts_, fusible_);
    find_visible(groups);
    for (const NodeGroup& group : groups) {
      direction_ = direction_of(group);
      nodes_ = group.nodes;
      if (group.elementwise)
        add_elementwise(group.nodes);
      else
        add_node(group.nodes[0]);
    }
    for (const auto& [name, value] : graph_.outputs()) keep(value);
    direction_ = Direction::weight_gradient;
    place_gradients();
    reuse_inputs(graph_, plan_);
    place_activations(plan_);
    find_sums();
    while (plan_.forward_end < now() &&
           plan_.kernels[plan_.forward_end].direction == Direction::forward)
      ++plan_.forward_end;
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
      LayoutChoice choice = layouts_for(static_cast<NodeId>(i), offered);
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

  LayoutChoice layouts_for(NodeId id, const std::vector<Layout>& offered) const {
    const Node& node = graph_.node(id);
    if (fusible_[id]) return elementwise_layouts(graph_, node, offered);
    if (node.op->name == "shard_copies")
      return {offered, std::vector<Layout>(node.outputs.size(), offered[0])};
    if (!is_view(node))
      if (const auto& layouts = find_kernel(*devices_[id], node.op->name).layouts)
        return layouts(graph_, node, offered);
    return {std::vector<Layout>(node.inputs.size()), std::vector<Layout>(node.outputs.size())};
  }

  // Others wait for a group as soon as they wait for one of its nodes.
  Direction direction_of(const NodeGroup& group) const {
    const auto backward = std::find_if(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
      return graph_.node(id).direction == Direction::backward;
    });
    return graph_.node(backward == group.nodes.end() ? group.nodes.front() : *backward).direction;
  }

  // Which values are used by another kernel than the one that computes them.
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

  Buffer buffer_for(ValueId value, const Layout& layout, Device& device) const {
    Buffer buffer;
    buffer.value = value;
    buffer.layout = layout;
    const TensorType& type = graph_.type(value);
    buffer.bytes = static_cast<size_t>(type.shape.elements()) * size_of(type.dtype);
    buffer.device = &device;
    return buffer;
  }

  int add_buffer(ValueId value, Device& device) {
    Buffer buffer = buffer_for(value, layouts_[value], device);
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

  int now() const { return static_cast<int>(plan_.kernels.size()); }

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

  // Outputs are read by the processor, after the run.
  void keep(ValueId value) {
    plan_.buffer_of[value] = available(value, layouts_[value], cpu());
    Buffer& b = plan_.buffers[plan_.buffer_of[value]];
    b.last = plan_.buffers[b.root].last = kForever;
  }

  // The buffer of a value in the wanted layout on a device: its own, or a copy made by kernels
  // inserted here. The processor changes layouts and lies between any two other devices.
  int available(ValueId value, const Layout& wanted, Device& device) {
    const Shape& shape = graph_.type(value).shape;
    const auto fits = [&](int buffer) {
      return plan_.buffers[buffer].device == &device &&
             same_memory(shape, plan_.buffers[buffer].layout, wanted);
    };
    const int own = plan_.buffer_of[value];
    if (fits(own)) return own;
    const auto [first, last] = copies_.equal_range(value);
    for (auto copy = first; copy != last; ++copy)
      if (fits(copy->second)) return copy->second;
    if (&device != &cpu()) return move(available(value, wanted, cpu()), device);
    if (plan_.buffers[own].device == &cpu()) return change_layout(own, wanted);
    if (same_memory(shape, plan_.buffers[own].layout, wanted)) return move(own, cpu());
    return change_layout(available(value, Layout(plan_.buffers[own].layout), cpu()), wanted);
  }

  int change_layout(int source, const Layout& wanted) {
    const ValueId value = plan_.buffers[source].value;
    return insert("change layout", source, buffer_for(value, wanted, cpu()),
                  layout_change(value, plan_.buffers[source].layout, wanted));
  }

  // Either the source or the result is the processor's.
  int move(int source, Device& device) {
    const Buffer& from = plan_.buffers[source];
    Device* other = &device == &cpu() ? from.device : &device;
    const bool reads = &device == &cpu();
    return insert("copy", source, buffer_for(from.value, from.layout, device),
                  [=, bytes = from.bytes](const KernelRun& run) {
                    if (reads)
                      other->read(run.inputs[0], run.outputs[0], bytes);
                    else
                      other->write(run.outputs[0], run.inputs[0], bytes);
                  });
  }

  std::function<void(const KernelRun&)> layout_change(ValueId value, const Layout& from,
                                                      const Layout& to) const {
    return [from, to, type = graph_.type(value)](const KernelRun& run) {
      convert_layout(run.pool, type.shape, type.dtype, run.inputs[0], from, run.outputs[0], to);
    };
  }

  int insert(std::string op, int source, Buffer buffer, std::function<void(const KernelRun&)> run) {
    const ValueId value = buffer.value;
    PlannedKernel planned;
    planned.op = std::move(op);
    planned.layer = graph_.value(value).name;
    planned.kernel.run = std::move(run);
    planned.inputs = {source};
    planned.outputs = {append(std::move(buffer))};
    const int copy = planned.outputs[0];
    finish(std::move(planned));
    copies_.emplace(value, copy);
    return copy;
  }

  void finish(PlannedKernel planned) {
    planned.direction = direction_;
    planned.nodes = nodes_;
    for (const int output : planned.outputs) define(output);
    for (const int input : planned.inputs) use(input);
    if (planned.kernel.workspace_bytes > 0) {
      Buffer workspace;
      workspace.bytes = planned.kernel.workspace_bytes;
      workspace.device = plan_.buffers[planned.outputs[0]].device;
      planned.workspace = append(std::move(workspace));
      define(planned.workspace);
    }
    plan_.kernels.push_back(std::move(planned));
  }

  void add_elementwise(const std::vector<NodeId>& nodes) {
    // Operands of the full shape are wanted in the group's layout; others are read by strides.
    for (const NodeId id : nodes)
      for (size_t k = 0; k < graph_.node(id).inputs.size(); ++k) {
        const ValueId input = graph_.node(id).inputs[k];
        if (plan_.buffer_of[input] >= 0) available(input, wanted_[id].inputs[k], cpu());
      }
    ElementLayouts layouts(layouts_);
    for (const NodeId id : nodes)
      for (size_t k = 0; k < graph_.node(id).inputs.size(); ++k)
        if (plan_.buffer_of[graph_.node(id).inputs[k]] >= 0)
          layouts.set(graph_.node(id).inputs[k], wanted_[id].inputs[k]);
    PlannedKernel planned;
    std::vector<ValueId> inputs, outputs;
    planned.kernel = make_elementwise(graph_, nodes, layouts, visible_, inputs, outputs);
    const Node& first = graph_.node(nodes.front());
    planned.op = nodes.size() > 1 ? "elementwise" : first.op->name;
    planned.layer = first.name;
    for (const NodeId id : nodes) planned.flops += node_flops(graph_, graph_.node(id));
    for (const ValueId input : inputs)
      planned.inputs.push_back(available(input, layouts[input], cpu()));
    for (const ValueId output : outputs) planned.outputs.push_back(add_buffer(output, cpu()));
    finish(std::move(planned));
  }

  Device& device_of(ValueId value) const { return *plan_.buffers[plan_.buffer_of[value]].device; }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    const LayoutChoice& wanted = wanted_[id];
    PlannedKernel planned;
    planned.op = node.op->name;
    planned.layer = node.name;
    planned.flops = node_flops(graph_, node);
    Device& device = is_view(node) ? device_of(node.inputs[0]) : *devices_[id];
    for (size_t k = 0; k < node.inputs.size(); ++k)
      planned.inputs.push_back(available(node.inputs[k], wanted.inputs[k], device));
    if (is_view(node)) return add_views(node, planned.inputs[0]);
    const KernelDefinition& definition = find_kernel(device, node.op->name);
    planned.kernel = definition.make(
        {graph_, node, wanted.inputs, wanted.outputs, threads_, choices_, device, lanes_});
    for (const ValueId output : node.outputs) planned.outputs.push_back(add_buffer(output, device));
    finish(std::move(planned));
  }

  // A reshape of a row-major value is the same memory under another shape, and copies for shards
  // are only names for it: they have no kernel.
  static bool is_view(const Node& node) {
    return node.op->name == "reshape" || node.op->name == "shard_copies";
  }

  void add_views(const Node& node, int source) {
    for (const ValueId output : node.outputs) {
      const int view = add_buffer(output, *plan_.buffers[source].device);
      plan_.buffers[view].view_of = source;
      plan_.buffers[view].root = plan_.buffers[source].root;
      plan_.buffers[view].region = plan_.buffers[source].region;
      plan_.buffers[view].first = now();
    }
  }

  // The first forward node that uses each value, or none. The gradient of a parameter is complete
  // after the backward pass of its first user.
  std::vector<NodeId> first_users() const {
    std::vector<NodeId> first(graph_.values().size(), -1);
    for (NodeId id = graph_.forward_end() - 1; id >= 0; --id)
      for (const ValueId input : graph_.node(id).inputs) first[input] = id;
    return first;
  }

  // Gradients, those of the last layers first, then the observed statistics. A gradient that is a
  // leaf, a view or already placed is copied into its slot. The order follows the forward pass and
  // not this plan's kernels: lanes of any size, whatever they recompute, are added place by place.
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
      const NodeId producer = graph_.value(w.value).producer, user = first[w.target];
      // Gradients are complete where their parameters are used, whatever the size of the batch: one
      // that is made elsewhere, because there is nothing to sum, is copied into its slot there.
      const bool at_home =
          user < 0 || producer < 0 || graph_.node(producer).origin == graph_.node(user).origin;
      nodes_.clear();
      if (user >= 0 || producer >= 0) nodes_.push_back(user >= 0 ? user : producer);
      const int own = available(w.value, layouts_[w.value], cpu());
      const Buffer& source = plan_.buffers[own];
      const bool in_place = at_home && source.region == Region::activations && source.root == own &&
                            graph_.value(w.value).kind == ValueKind::computed &&
                            same_memory(graph_.type(w.value).shape, source.layout, layout);
      const int slot = in_place ? own : copy_to_slot(own, layout);
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

  // Marks kernels and gradients of which only sums over lanes are needed. Observations are not
  // among them: lanes scale theirs first.
  void find_sums() {
    std::vector<int> uses(plan_.buffers.size(), 0);  // by root: buffers, and those who read them
    for (const Buffer& buffer : plan_.buffers) ++uses[buffer.root];
    for (const PlannedKernel& kernel : plan_.kernels)
      for (const int input : kernel.inputs) ++uses[plan_.buffers[input].root];
    for (const auto& [name, value] : graph_.outputs())
      ++uses[plan_.buffers[plan_.buffer_of[value]].root];
    const auto slot_of = [&](int output) -> GradientSlot* {
      const Buffer& buffer = plan_.buffers[output];
      if (buffer.region != Region::gradients || buffer.root != output || uses[output] > 1)
        return nullptr;
      const auto slot = std::ranges::find(plan_.gradients, buffer.offset, &GradientSlot::offset);
      return slot->is_state ? nullptr : &*slot;
    };
    for (PlannedKernel& kernel : plan_.kernels) {
      kernel.only_sums = std::ranges::all_of(kernel.outputs, slot_of);
      if (!kernel.only_sums) continue;
      for (const int output : kernel.outputs) slot_of(output)->only_sum = true;
    }
  }

  int copy_to_slot(int source, const Layout& layout) {
    const ValueId value = plan_.buffers[source].value;
    return insert("copy gradient", source, buffer_for(value, layout, cpu()),
                  layout_change(value, plan_.buffers[source].layout, layout));
  }

  const Graph& graph_;
  int threads_;
  KernelChoices& choices_;
  LaneCounts lanes_;
  std::vector<Device*> devices_;  // of each node
  std::vector<bool> fusible_;     // element-wise nodes of the processor
  std::vector<Layout> layouts_;
  std::vector<LayoutChoice> wanted_;
  std::vector<bool> visible_;
  std::multimap<ValueId, int> copies_;
  Direction direction_ = Direction::forward;  // of the group that is being planned
  std::vector<NodeId> nodes_;                 // and its nodes
  Plan plan_;
};

}  // namespace

Plan make_plan(const Graph& graph, int threads, KernelChoices& choices, Device& device,
               const LaneCounts& lanes) {
  return Planner(graph, threads, choices, device, lanes).run();
}

}  // namespace artel
