#include "artel/exec/plan/element_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "artel/exec/cpu/elementwise/elementwise.h"
#include "artel/graph/op.h"

namespace artel {
namespace {

using kernels::ElementOp;

// The registers of longer programs would not fit into the L1 cache.
constexpr size_t kLongestProgram = 24;

// Strides of a value over the axes of `shape` (to which it is broadcast), in the memory order of
// `order`.
std::vector<int64_t> operand_strides(const Shape& value, const Layout& layout, const Shape& shape,
                                     const Layout& order) {
  const std::vector<int64_t> own = strides_of(value, layout);
  const int extra = shape.rank() - value.rank();
  std::vector<int64_t> strides;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = order.order.empty() ? i : order.order[i];
    strides.push_back(axis < extra || value[axis - extra] == 1 ? 0 : own[axis - extra]);
  }
  return strides;
}

// True if, aligned at the last axis, each extent of `value` equals that of `shape` or is 1.
bool broadcasts_to(const Shape& value, const Shape& shape) {
  const int extra = shape.rank() - value.rank();
  if (extra < 0) return false;
  for (int axis = 0; axis < value.rank(); ++axis)
    if (value[axis] != 1 && value[axis] != shape[axis + extra]) return false;
  return true;
}

// The function of a custom op, bound to the attributes of the node.
std::shared_ptr<const kernels::ElementFunction> function_of(const Graph& graph, const Node& node) {
  bool fits = !node.inputs.empty() && node.inputs.size() <= 3 && node.outputs.size() == 1 &&
              graph.type(node.outputs[0]).dtype == DType::f32;
  for (const ValueId input : node.inputs) fits = fits && graph.type(input).dtype == DType::f32;
  require(
      fits, ErrorKind::unsupported,
      "[layer '{}'] {}: got {} inputs and {} outputs for an element-wise kernel, expected one to "
      "three and one, all f32",
      node.name, node.op->name, node.inputs.size(), node.outputs.size());
  const Shape& shape = graph.type(node.outputs[0]).shape;
  for (const ValueId input : node.inputs)
    require(
        broadcasts_to(graph.type(input).shape, shape), ErrorKind::shape,
        "[layer '{}'] {}: got an input {} for the output {} of an element-wise kernel, expected "
        "one that is broadcast to it",
        node.name, node.op->name, to_string(graph.type(input).shape), to_string(shape));
  const KernelDefinition& own = find_kernel(cpu(), node.op->name);
  return std::make_shared<const kernels::ElementFunction>(
      [&own, attributes = node.attributes](const float* a, const float* b, const float* c,
                                           float* out, int64_t n) {
        own.elements({{a, b, c}, out, n, attributes});
      });
}

kernels::ElementInstruction instruction_of(const Graph& graph, const Node& node) {
  if (const auto known = kernels::find_element_op(node.op->name))
    return {.op = *known, .immediate = static_cast<float>(node.attributes.number("value", 0))};
  return {.op = ElementOp::custom, .function = function_of(graph, node)};
}

}  // namespace

bool is_elementwise(const Node& node) {
  if (kernels::find_element_op(node.op->name)) return true;
  return has_kernel(cpu(), node.op->name) && find_kernel(cpu(), node.op->name).elements;
}

LayoutChoice elementwise_layouts(const Graph& graph, const Node& node,
                                 const std::vector<Layout>& offered) {
  const Shape& shape = graph.type(node.outputs[0]).shape;
  Layout result;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (shape.rank() == 4 && graph.type(node.inputs[i]).shape == shape &&
        offered[i] == Layout::channels_last())
      result = offered[i];
  LayoutChoice choice = {offered, {result}};
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (graph.type(node.inputs[i]).shape == shape) choice.inputs[i] = result;
  return choice;
}

std::vector<NodeGroup> group_nodes(const Graph& graph, const std::vector<Layout>& layouts,
                                   const std::vector<Device*>& devices,
                                   const std::vector<bool>& fusible) {
  std::vector<NodeGroup> groups;
  std::vector<int> group_of(graph.values().size(), -1);
  const auto fits = [&](NodeId id, int group) {
    const Node& node = graph.node(id);
    if (group < 0 || !groups[group].elementwise || groups[group].nodes.size() >= kLongestProgram)
      return false;
    const Node& first = graph.node(groups[group].nodes.front());
    if (devices[groups[group].nodes.front()] != devices[id]) return false;
    if ((first.direction == Direction::forward) != (node.direction == Direction::forward))
      return false;
    const ValueId other = first.outputs[0];
    const ValueId own = node.outputs[0];
    return graph.type(other).shape == graph.type(own).shape && layouts[other] == layouts[own];
  };
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    int group = -1;
    for (const ValueId input : node.inputs) group = std::max(group, group_of[input]);
    const bool elementwise = fusible[id];
    if (elementwise && fits(id, group)) {
      groups[group].nodes.push_back(id);
    } else {
      group = static_cast<int>(groups.size());
      groups.push_back({{id}, elementwise});
    }
    for (const ValueId output : node.outputs) group_of[output] = group;
  }
  return groups;
}

std::vector<bool> visible_values(const Graph& graph, const std::vector<NodeGroup>& groups) {
  std::vector<bool> visible(graph.values().size(), false);
  std::vector<int> group_of(graph.nodes().size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (const NodeId id : groups[g].nodes) group_of[id] = static_cast<int>(g);
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    for (const ValueId input : graph.node(static_cast<NodeId>(i)).inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer < 0 || group_of[producer] != group_of[i]) visible[input] = true;
    }
  for (const auto& [name, value] : graph.outputs()) visible[value] = true;
  for (const StateUpdate& update : graph.state_updates()) visible[update.observed] = true;
  for (const GradientOf& g : graph.gradients()) visible[g.gradient] = true;
  return visible;
}

namespace {

// The registers and instructions of a group, and the values that it reads and writes.
struct GroupCode {
  std::vector<ElementGroup::Instruction> code;
  std::vector<int> outputs;
  std::string name;
};

GroupCode code_of(const Graph& graph, const std::vector<NodeId>& nodes,
                  const std::vector<bool>& visible, std::vector<ValueId>& inputs,
                  std::vector<ValueId>& outputs) {
  std::map<ValueId, int> registers;
  std::set<ValueId> inside;
  for (const NodeId id : nodes) inside.insert(graph.node(id).outputs[0]);
  for (const NodeId id : nodes)
    for (const ValueId input : graph.node(id).inputs)
      if (!inside.contains(input) && !registers.contains(input)) {
        registers[input] = static_cast<int>(inputs.size());
        inputs.push_back(input);
      }
  GroupCode group;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    std::vector<int> operands;
    for (const ValueId input : node.inputs) operands.push_back(registers.at(input));
    const int result = static_cast<int>(inputs.size() + group.code.size());
    group.code.push_back({node.op->name, std::move(operands),
                          static_cast<float>(node.attributes.number("value", 0))});
    const ValueId output = node.outputs[0];
    registers[output] = result;
    if (visible[output]) {
      group.outputs.push_back(result);
      outputs.push_back(output);
    }
    group.name += (group.name.empty() ? "" : "+") + node.op->name;
  }
  return group;
}

// Makes the function that runs the group on the CPU.
std::function<void(const KernelRun&)> run_here(const Graph& graph, const std::vector<NodeId>& nodes,
                                               const ElementGroup& group) {
  kernels::ElementProgram program;
  program.inputs = group.inputs();
  program.outputs = group.outputs;
  for (size_t i = 0; i < nodes.size(); ++i) {
    kernels::ElementInstruction instruction = instruction_of(graph, graph.node(nodes[i]));
    int* operands[] = {&instruction.a, &instruction.b, &instruction.c};
    for (size_t k = 0; k < group.code[i].operands.size(); ++k)
      *operands[k] = group.code[i].operands[k];
    program.code.push_back(instruction);
  }
  const auto operands = [](const std::vector<ElementGroup::Strides>& strides) {
    std::vector<kernels::ElementOperand> result;
    for (const ElementGroup::Strides& each : strides) result.push_back({each});
    return result;
  };
  auto kernel = std::make_shared<kernels::ElementKernel>(std::move(program), group.extents,
                                                         operands(group.input_strides),
                                                         operands(group.output_strides));
  return [=](const KernelRun& run) {
    kernel->run(run.pool, reinterpret_cast<const float* const*>(run.inputs.data()),
                reinterpret_cast<float* const*>(run.outputs.data()));
  };
}

}  // namespace

Kernel make_elementwise(const Graph& graph, const std::vector<NodeId>& nodes,
                        const ElementLayouts& layouts, const std::vector<bool>& visible,
                        Device& device, std::vector<ValueId>& inputs,
                        std::vector<ValueId>& outputs) {
  GroupCode code = code_of(graph, nodes, visible, inputs, outputs);
  const ValueId first = graph.node(nodes.front()).outputs[0];
  const Shape& shape = graph.type(first).shape;
  const Layout& order = layouts[first];
  ElementGroup group = {std::move(code.code), std::move(code.outputs), {}, {}, {}};
  for (int i = 0; i < shape.rank(); ++i)
    group.extents.push_back(shape[order.order.empty() ? i : order.order[i]]);
  const auto strides = [&](const std::vector<ValueId>& values) {
    std::vector<ElementGroup::Strides> result;
    for (const ValueId value : values)
      result.push_back(operand_strides(graph.type(value).shape, layouts[value], shape, order));
    return result;
  };
  group.input_strides = strides(inputs);
  group.output_strides = strides(outputs);
  Kernel result = &device == &cpu() ? Kernel{{}, 0, run_here(graph, nodes, group)}
                                    : find_traits(device)->make_group(group, device);
  if (nodes.size() > 1) result.algorithm = code.name;
  // With one output, the last instruction writes it after all reads of the block.
  if (outputs.size() == 1)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (graph.type(inputs[i]).shape == shape && layouts[inputs[i]] == order)
        result.in_place.emplace_back(0, static_cast<int>(i));
  return result;
}

}  // namespace artel
