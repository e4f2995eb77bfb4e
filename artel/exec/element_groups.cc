#include "artel/exec/element_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "artel/exec/kernels/elementwise.h"
#include "artel/graph/op.h"

namespace artel {
namespace {

using kernels::ElementOp;

// Longer programs would push the blocks of their registers out of the first-level cache.
constexpr size_t kLongestProgram = 24;

const std::map<std::string_view, ElementOp>& element_ops() {
  static const std::map<std::string_view, ElementOp> ops = {
      {"add", ElementOp::add},
      {"sub", ElementOp::sub},
      {"mul", ElementOp::mul},
      {"div", ElementOp::div},
      {"maximum", ElementOp::maximum},
      {"minimum", ElementOp::minimum},
      {"pow", ElementOp::pow},
      {"greater", ElementOp::greater},
      {"equal", ElementOp::equal},
      {"select", ElementOp::select},
      {"neg", ElementOp::neg},
      {"abs", ElementOp::abs},
      {"square", ElementOp::square},
      {"sqrt", ElementOp::sqrt},
      {"rsqrt", ElementOp::rsqrt},
      {"reciprocal", ElementOp::reciprocal},
      {"exp", ElementOp::exp},
      {"log", ElementOp::log},
      {"sin", ElementOp::sin},
      {"cos", ElementOp::cos},
      {"tanh", ElementOp::tanh},
      {"sigmoid", ElementOp::sigmoid},
      {"relu", ElementOp::relu},
      {"gelu", ElementOp::gelu_exact},
      {"gelu_tanh", ElementOp::gelu_tanh},
      {"silu", ElementOp::silu},
      {"softplus", ElementOp::softplus},
      {"erf", ElementOp::erf},
      {"sign", ElementOp::sign},
      {"leaky_relu", ElementOp::leaky_relu},
      {"add_scalar", ElementOp::add_scalar},
      {"mul_scalar", ElementOp::mul_scalar},
      {"pow_scalar", ElementOp::pow_scalar},
      {"clamp_min", ElementOp::clamp_min},
      {"clamp_max", ElementOp::clamp_max},
      {"relu_grad", ElementOp::relu_grad},
      {"leaky_relu_grad", ElementOp::leaky_relu_grad},
      {"gelu_grad", ElementOp::gelu_exact_grad},
      {"gelu_tanh_grad", ElementOp::gelu_tanh_grad},
      {"silu_grad", ElementOp::silu_grad},
      {"sigmoid_grad", ElementOp::sigmoid_grad},
      {"tanh_grad", ElementOp::tanh_grad}};
  return ops;
}

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

// From the last axis on, each extent is that of `shape`, or 1.
bool broadcasts_to(const Shape& value, const Shape& shape) {
  const int extra = shape.rank() - value.rank();
  if (extra < 0) return false;
  for (int axis = 0; axis < value.rank(); ++axis)
    if (value[axis] != 1 && value[axis] != shape[axis + extra]) return false;
  return true;
}

// A user's op: its function with the attributes of the node.
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
  const auto known = element_ops().find(node.op->name);
  if (known != element_ops().end())
    return {.op = known->second,
            .immediate = static_cast<float>(node.attributes.number("value", 0))};
  return {.op = ElementOp::custom, .function = function_of(graph, node)};
}

}  // namespace

bool is_elementwise(const Node& node) {
  if (element_ops().contains(node.op->name)) return true;
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
                                   const std::vector<bool>& fusible) {
  std::vector<NodeGroup> groups;
  std::vector<int> group_of(graph.values().size(), -1);
  const auto fits = [&](const Node& node, int group) {
    if (group < 0 || !groups[group].elementwise || groups[group].nodes.size() >= kLongestProgram)
      return false;
    const Node& first = graph.node(groups[group].nodes.front());
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
    if (elementwise && fits(node, group)) {
      groups[group].nodes.push_back(id);
    } else {
      group = static_cast<int>(groups.size());
      groups.push_back({{id}, elementwise});
    }
    for (const ValueId output : node.outputs) group_of[output] = group;
  }
  return groups;
}

Kernel make_elementwise(const Graph& graph, const std::vector<NodeId>& nodes,
                        const ElementLayouts& layouts, const std::vector<bool>& visible,
                        std::vector<ValueId>& inputs, std::vector<ValueId>& outputs) {
  std::map<ValueId, int> registers;
  std::set<ValueId> inside;
  for (const NodeId id : nodes) inside.insert(graph.node(id).outputs[0]);
  for (const NodeId id : nodes)
    for (const ValueId input : graph.node(id).inputs)
      if (!inside.contains(input) && !registers.contains(input)) {
        registers[input] = static_cast<int>(inputs.size());
        inputs.push_back(input);
      }

  kernels::ElementProgram program;
  program.inputs = static_cast<int>(inputs.size());
  std::string name;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    kernels::ElementInstruction instruction = instruction_of(graph, node);
    int* operands[] = {&instruction.a, &instruction.b, &instruction.c};
    for (size_t i = 0; i < node.inputs.size(); ++i) *operands[i] = registers.at(node.inputs[i]);
    const int result = program.inputs + static_cast<int>(program.code.size());
    program.code.push_back(instruction);
    const ValueId output = node.outputs[0];
    registers[output] = result;
    if (visible[output]) {
      program.outputs.push_back(result);
      outputs.push_back(output);
    }
    name += (name.empty() ? "" : "+") + node.op->name;
  }

  const ValueId first = graph.node(nodes.front()).outputs[0];
  const Shape& shape = graph.type(first).shape;
  const Layout& order = layouts[first];
  std::vector<int64_t> extents;
  for (int i = 0; i < shape.rank(); ++i)
    extents.push_back(shape[order.order.empty() ? i : order.order[i]]);
  const auto operands = [&](const std::vector<ValueId>& values) {
    std::vector<kernels::ElementOperand> result;
    for (const ValueId value : values)
      result.push_back({operand_strides(graph.type(value).shape, layouts[value], shape, order)});
    return result;
  };
  auto kernel = std::make_shared<kernels::ElementKernel>(std::move(program), std::move(extents),
                                                         operands(inputs), operands(outputs));
  Kernel result = {nodes.size() > 1 ? name : std::string(), 0, [=](const KernelRun& run) {
                     kernel->run(run.pool, reinterpret_cast<const float* const*>(run.inputs.data()),
                                 reinterpret_cast<float* const*>(run.outputs.data()));
                   }};
  // With one output, the last instruction writes it after all reads of the block.
  if (outputs.size() == 1)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (graph.type(inputs[i]).shape == shape && layouts[inputs[i]] == order)
        result.in_place.emplace_back(0, static_cast<int>(i));
  return result;
}

}  // namespace artel
