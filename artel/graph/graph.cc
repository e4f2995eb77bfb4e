#include "artel/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/graph/op.h"

namespace artel {

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", to_string(type.dtype), to_string(type.shape));
}

std::string_view to_string(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::backward:
      return "backward";
    case Direction::weight_gradient:
      return "weight gradient";
  }
  return "";
}

const TensorType& Value::type() const { return graph_->type(id_); }

ValueId Graph::add_value(ValueData data) {
  const auto id = static_cast<ValueId>(values_.size());
  if (data.kind == ValueKind::parameter || data.kind == ValueKind::state)
    named_.emplace(data.name, id);
  values_.push_back(std::move(data));
  return id;
}

Value Graph::input(std::string name, TensorType type) {
  type.shape.elements();  // rejects negative extents
  return handle(add_value({std::move(type), ValueKind::input, std::move(name)}));
}

Value Graph::parameter(std::string_view name, Shape shape, DType type) {
  const std::string full = scoped(name);
  require(!find(full), ErrorKind::invalid_argument,
          "[{}] two parameters have this name; give the layers different names", full);
  return handle(add_value({{type, std::move(shape)}, ValueKind::parameter, full}));
}

Value Graph::state(std::string_view name, Shape shape) {
  const std::string full = scoped(name);
  require(!find(full), ErrorKind::invalid_argument,
          "[{}] two states have this name; give the layers different names", full);
  return handle(add_value({{DType::f32, std::move(shape)}, ValueKind::state, full}));
}

Value Graph::constant(std::string name, Tensor value) {
  const ValueId id =
      add_value({{value.dtype(), value.shape()}, ValueKind::constant, std::move(name)});
  constants_.emplace(id, std::move(value));
  return handle(id);
}

Value Graph::shard(const ValueData& whole, const Split& split, int shard) {
  ValueData data = whole;
  data.name = fmt::format("{}#{}", whole.name, shard);
  data.type.shape = shard_shape(whole.type.shape, split, shard);
  data.shard_of = {whole.name, whole.type.shape, split, shard};
  return handle(add_value(std::move(data)));
}

std::vector<Value> Graph::append(Node node) {
  std::vector<TensorType> types = node.op->infer(InferContext(*this, node));
  const auto id = static_cast<NodeId>(nodes_.size());
  std::vector<Value> results;
  for (TensorType& type : types) {
    const int output = static_cast<int>(node.outputs.size());
    node.outputs.push_back(add_value({std::move(type), ValueKind::computed, {}, id, output}));
    results.push_back(handle(node.outputs.back()));
  }
  nodes_.push_back(std::move(node));
  return results;
}

std::vector<Value> Graph::add(std::string_view op, std::vector<Value> inputs,
                              Attributes attributes) {
  Node node;
  node.op = &find_op(op);
  node.name = scope_;
  node.attributes = std::move(attributes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i] && &inputs[i].graph() == this, ErrorKind::invalid_argument,
            "[{}] {}: an input is missing or belongs to another graph", scope_, op);
    const auto& takes_integers = node.op->takes_integers;
    const bool as_it_is = inputs[i].type().dtype == DType::f32 ||
                          (takes_integers && takes_integers(node.attributes, static_cast<int>(i)));
    node.inputs.push_back(as_it_is ? inputs[i].id() : add_one("to_f32", {inputs[i]}).id());
  }
  return append(std::move(node));
}

Value Graph::add_one(std::string_view op, std::vector<Value> inputs, Attributes attributes) {
  return add(op, std::move(inputs), std::move(attributes)).front();
}

void Graph::update_state(Value state, Value observed, double momentum) {
  state_updates_.push_back({state.id(), observed.id(), momentum});
}

void Graph::set_gradient(Value parameter, Value gradient) {
  gradients_.push_back({parameter.id(), gradient.id()});
}

void Graph::set_output(std::string name, Value value) {
  for (auto& [existing, id] : outputs_) {
    if (existing == name) {
      id = value.id();
      return;
    }
  }
  outputs_.emplace_back(std::move(name), value.id());
}

void Graph::drop_output(std::string_view name) {
  std::erase_if(outputs_, [&](const auto& output) { return output.first == name; });
}

ValueId Graph::output_id(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [existing, id] : outputs_) {
    if (existing == name) return id;
    names.push_back(existing);
  }
  fail(ErrorKind::not_found, "the graph has no output '{}', only {}", name, join(names, ", "));
}

bool Graph::has_output(std::string_view name) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&](const auto& output) { return output.first == name; });
}

const Tensor& Graph::constant_data(ValueId id) const {
  const auto found = constants_.find(id);
  require(found != constants_.end(), ErrorKind::internal, "value {} is not a constant", id);
  return found->second;
}

std::optional<ValueId> Graph::find(std::string_view name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ValueId> Graph::of_kind(ValueKind kind) const {
  std::vector<ValueId> ids;
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].kind == kind) ids.push_back(static_cast<ValueId>(i));
  return ids;
}

NodeId Graph::forward_end() const {
  const auto first = std::find_if(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.direction != Direction::forward;
  });
  return static_cast<NodeId>(first - nodes_.begin());
}

std::string Graph::scoped(std::string_view name) const {
  if (scope_.empty()) return std::string(name);
  return name.empty() ? scope_ : fmt::format("{}.{}", scope_, name);
}

Graph::Scope::Scope(Graph& graph, std::string_view name)
    : graph_(graph), previous_(graph.scope_.size()) {
  graph.scope_ = graph.scoped(name);
}

Graph::Scope::~Scope() { graph_.scope_.resize(previous_); }

Value Graph::adopt(const Graph& other, ValueId leaf) {
  const ValueData& data = other.value(leaf);
  if (data.kind == ValueKind::constant) return constant(data.name, other.constant_data(leaf));
  return handle(add_value(data));
}

std::vector<Value> Graph::adopt(const Node& node, const std::vector<Value>& inputs) {
  Node copy = node;
  copy.inputs.clear();
  copy.outputs.clear();
  for (const Value& input : inputs) copy.inputs.push_back(input.id());
  return append(std::move(copy));
}

std::string to_string(const Graph& graph) {
  std::string text;
  const auto label = [&](ValueId id) {
    const ValueData& value = graph.value(id);
    return value.name.empty() ? fmt::format("%{}", id) : value.name;
  };
  for (const Node& node : graph.nodes()) {
    std::vector<std::string> inputs, outputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(fmt::format("{}: {}", label(id), to_string(graph.type(id))));
    for (const ValueId id : node.outputs)
      outputs.push_back(fmt::format("{}: {}", label(id), to_string(graph.type(id))));
    text += fmt::format("layer '{}': {}({}) [{}] -> {}\n", node.name, node.op->name,
                        join(inputs, ", "), to_string(node.attributes), join(outputs, ", "));
  }
  for (const ValueId id : graph.of_kind(ValueKind::constant)) {
    const Tensor& data = graph.constant_data(id);
    const auto* const bytes = reinterpret_cast<const char*>(data.raw());
    text += fmt::format("constant '{}': {:016x}\n", label(id), hash_name({bytes, data.bytes()}));
  }
  for (const StateUpdate& update : graph.state_updates())
    text += fmt::format("state '{}': follows {} by {}\n", label(update.state),
                        label(update.observed), update.momentum);
  for (const GradientOf& gradient : graph.gradients())
    text +=
        fmt::format("gradient of '{}': {}\n", label(gradient.parameter), label(gradient.gradient));
  for (const auto& [name, value] : graph.outputs())
    text += fmt::format("output '{}': {}\n", name, label(value));
  return text;
}

}  // namespace artel
