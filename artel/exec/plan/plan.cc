#include "artel/exec/plan/plan.h"

#include <algorithm>
#include <map>

#include "artel/base/error.h"
#include "artel/exec/plan/element_groups.h"
#include "artel/exec/plan/memory_plan.h"
#include "artel/exec/plan/node_places.h"
#include "artel/graph/op.h"

namespace artel {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, int threads, KernelChoices& choices, const NodePlaces& places,
          Device& device, const LaneCounts& lanes)
      : graph_(graph),
        threads_(threads),
        choices_(choices),
        lanes_(lanes),
        device_(device),
        devices_(places.devices),
        fusible_(places.fusible),
        layouts_(graph.values().size()) {}

  Plan run() {
    assign_layouts();
    plan_.buffer_of.assign(graph_.values().size(), -1);
    for (size_t i = 0; i < graph_.values().size(); ++i)
      if (graph_.value(static_cast<ValueId>(i)).kind != ValueKind::computed)
        add_buffer(static_cast<ValueId>(i), cpu());
    const std::vector<NodeGroup> groups = group_nodes(graph_, layouts_, devices_, fusible_);
    visible_ = visible_values(graph_, groups);
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
  // Chooses a layout for every value: for leaves, the one that their first reader prefers; for all
  // others, the one that their kernel produces.
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

  // A group belongs to the backward pass if any of its nodes does.
  Direction direction_of(const NodeGroup& group) const {
    const auto backward = std::find_if(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
      return graph_.node(id).direction == Direction::backward;
    });
    return graph_.node(backward == group.nodes.end() ? group.nodes.front() : *backward).direction;
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

  // Keeps an output in CPU memory until the end of the run.
  void keep(ValueId value) {
    places_outputs_ = true;
    plan_.buffer_of[value] = available(value, layouts_[value], cpu());
    places_outputs_ = false;
    Buffer& b = plan_.buffers[plan_.buffer_of[value]];
    b.last = plan_.buffers[b.root].last = kForever;
  }

  // The buffer of a value on a device in the wanted layout: its own buffer, or a copy by kernels
  // inserted here. Copies between two other devices pass through the CPU, which also converts
  // layouts for devices that cannot.
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
    const Layout layout = plan_.buffers[own].layout;
    Device& home = *plan_.buffers[own].device;
    const bool same = same_memory(shape, layout, wanted);
    if (same && &device != &cpu() && is_resident(value)) return resident(own, device);
    if (!same && &device != &cpu() && changes_layouts(device, value))
      return change_layout(available(value, layout, device), wanted);
    if (same && &device != &cpu() && plan_.buffers[own].view_of >= 0) return view_on(own, device);
    if (&device != &cpu()) return move(available(value, wanted, cpu()), device);
    if (&home == &cpu()) return change_layout(own, wanted);
    if (same) return move(own, cpu());
    if (changes_layouts(home, value)) return move(available(value, wanted, home), cpu());
    return change_layout(available(value, layout, cpu()), wanted);
  }

  // True for parameters, states, and constants, whose copies on a device outlive a run. Ops that
  // write to a state run on the CPU.
  bool is_resident(ValueId value) const {
    const ValueKind kind = graph_.value(value).kind;
    return kind == ValueKind::parameter || kind == ValueKind::state || kind == ValueKind::constant;
  }

  int resident(int own, Device& device) {
    Buffer buffer = plan_.buffers[own];
    buffer.device = &device;
    const int copy = append(std::move(buffer));
    copies_.emplace(plan_.buffers[own].value, copy);
    return copy;
  }

  // Makes a view of the device's copy of the source of `own`, so that all views share one copy.
  int view_on(int own, Device& device) {
    const Buffer& source = plan_.buffers[plan_.buffers[own].view_of];
    const int base = available(source.value, Layout(source.layout), device);
    Buffer buffer = plan_.buffers[own];
    buffer.device = &device;
    const int view = append(std::move(buffer));
    show(view, base);
    copies_.emplace(plan_.buffers[own].value, view);
    return view;
  }

  // Makes buffer `view` a reshaped view of `source`.
  void show(int view, int source) {
    plan_.buffers[view].view_of = source;
    plan_.buffers[view].root = plan_.buffers[source].root;
    plan_.buffers[view].region = plan_.buffers[source].region;
    plan_.buffers[view].first = now();
  }

  bool changes_layouts(const Device& device, ValueId value) const {
    const DeviceTraits* const traits = find_traits(device);
    return traits && traits->change_layout && graph_.type(value).dtype == DType::f32;
  }

  // Inserts a conversion of the layout on the source's device.
  int change_layout(int source, const Layout& wanted) {
    const ValueId value = plan_.buffers[source].value;
    const Layout layout = plan_.buffers[source].layout;
    Device& device = *plan_.buffers[source].device;
    return insert("change layout", source, buffer_for(value, wanted, device),
                  layout_change_on(device, value, layout, wanted));
  }

  // Inserts a copy between the CPU and another device.
  int move(int source, Device& device) {
    const Buffer& from = plan_.buffers[source];
    Device* other = &device == &cpu() ? from.device : &device;
    const bool reads = &device == &cpu();
    return insert("copy", source, buffer_for(from.value, from.layout, device),
                  [=, bytes = from.bytes, later = places_outputs_](const KernelRun& run) {
                    if (reads && later)
                      other->read_later(run.inputs[0], run.outputs[0], bytes);
                    else if (reads)
                      other->read(run.inputs[0], run.outputs[0], bytes);
                    else
                      other->write(run.outputs[0], run.inputs[0], bytes);
                  });
  }

  std::function<void(const KernelRun&)> layout_change_on(Device& device, ValueId value,
                                                         const Layout& from,
                                                         const Layout& to) const {
    if (&device == &cpu()) return layout_change(value, from, to);
    return find_traits(device)->change_layout(graph_.type(value).shape, from, to, device).run;
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
    Device& device = *devices_[nodes.front()];
    // Operands of the full shape need the group's layout. Others are read with strides.
    for (const NodeId id : nodes)
      for (size_t k = 0; k < graph_.node(id).inputs.size(); ++k) {
        const ValueId input = graph_.node(id).inputs[k];
        if (plan_.buffer_of[input] >= 0) available(input, wanted_[id].inputs[k], device);
      }
    ElementLayouts layouts(layouts_);
    for (const NodeId id : nodes)
      for (size_t k = 0; k < graph_.node(id).inputs.size(); ++k)
        if (plan_.buffer_of[graph_.node(id).inputs[k]] >= 0)
          layouts.set(graph_.node(id).inputs[k], wanted_[id].inputs[k]);
    PlannedKernel planned;
    std::vector<ValueId> inputs, outputs;
    planned.kernel = make_elementwise(graph_, nodes, layouts, visible_, device, inputs, outputs);
    const Node& first = graph_.node(nodes.front());
    planned.op = nodes.size() > 1 ? "elementwise" : first.op->name;
    planned.layer = first.name;
    for (const NodeId id : nodes) planned.flops += node_flops(graph_, graph_.node(id));
    for (const ValueId input : inputs)
      planned.inputs.push_back(available(input, layouts[input], device));
    for (const ValueId output : outputs) planned.outputs.push_back(add_buffer(output, device));
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

  void add_views(const Node& node, int source) {
    for (const ValueId output : node.outputs) {
      show(add_buffer(output, *plan_.buffers[source].device), source);
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

  // Assigns slots to gradients, last layers first, then to observed statistics. A gradient that is
  // a leaf, a view, or already in another slot is copied. The order follows the forward pass
  // instead of this plan's kernels, because gradients of lanes of different sizes, with or without
  // recomputation, are added slot by slot.
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
    if (const DeviceTraits* const traits = find_traits(device_); traits && traits->change_layout)
      plan_.gradient_device = &device_;
    Device& home = *plan_.gradient_device;
    size_t offset = 0;
    for (const Wanted& w : wanted) {
      const Layout& layout = layouts_[w.target];
      const NodeId producer = graph_.value(w.value).producer, user = first[w.target];
      // For every batch size, a gradient must be complete where its parameter is used. If it is
      // computed elsewhere, because there is nothing to sum, it is copied into its slot there.
      const bool at_home =
          user < 0 || producer < 0 || graph_.node(producer).origin == graph_.node(user).origin;
      nodes_.clear();
      if (user >= 0 || producer >= 0) nodes_.push_back(user >= 0 ? user : producer);
      const int own = available(w.value, layouts_[w.value], home);
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
    // Buffers that share the memory of a gradient get its offset.
    for (Buffer& buffer : plan_.buffers) {
      if (plan_.buffers[buffer.root].region != Region::gradients) continue;
      buffer.region = Region::gradients;
      buffer.offset = plan_.buffers[buffer.root].offset;
    }
  }

  // Marks kernels and gradients that are needed only as sums over lanes. Observed statistics are
  // excluded, because each lane scales them first.
  void find_sums() {
    std::vector<int> uses(plan_.buffers.size(), 0);  // by root: number of buffers and readers
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
    const Buffer& from = plan_.buffers[source];
    return insert("copy gradient", source, buffer_for(from.value, layout, *from.device),
                  layout_change_on(*from.device, from.value, from.layout, layout));
  }

  const Graph& graph_;
  int threads_;
  KernelChoices& choices_;
  LaneCounts lanes_;
  Device& device_;                // of most nodes
  std::vector<Device*> devices_;  // by node
  std::vector<bool> fusible_;     // element-wise nodes that may share a kernel
  std::vector<Layout> layouts_;
  std::vector<LayoutChoice> wanted_;
  std::vector<bool> visible_;
  std::multimap<ValueId, int> copies_;
  // Nothing reads the copies inserted now until the end of the run.
  bool places_outputs_ = false;
  Direction direction_ = Direction::forward;  // direction of the current group
  std::vector<NodeId> nodes_;                 // nodes of the current group
  Plan plan_;
};

}  // namespace

Plan make_plan(const Graph& graph, int threads, KernelChoices& choices, Device& device,
               const LaneCounts& lanes) {
  return Planner(graph, threads, choices, place_nodes(graph, device), device, lanes).run();
}

}  // namespace artel
