#include "artel/graph/op.h"

#include "artel/base/registry.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

// The set of op names is the language that graphs are written in: one for the program.
Registry<OpDefinition>& registry() {
  static Registry<OpDefinition> ops("op", [] {
    Registry<OpDefinition>::Entries entries;
    for (OpDefinition& op : builtin_ops()) entries.emplace_back(op.name, std::move(op));
    return entries;
  }());
  return ops;
}

}  // namespace

void register_op(OpDefinition definition) {
  require_function("op", definition.name, definition.infer);
  std::string name = definition.name;
  registry().add(std::move(name), std::move(definition));
}

const OpDefinition& find_op(std::string_view name) { return registry().at(name); }

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const OpDefinition* op : registry().all())
    if (op->activation) names.push_back(op->name);
  return names;
}

void InferContext::reject(const std::string& reason) const {
  fail(ErrorKind::shape, "[layer '{}'] {}: {}", node_.name, node_.op->name, reason);
}

void InferContext::check_inputs(int least, int most) const {
  check(inputs() >= least && inputs() <= most, "got {} inputs, expected {}", inputs(),
        least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most));
}

const std::string* applied_activation(const Node& node) {
  for (const std::string& name : node.op->applies)
    if (node.attributes.flag(name)) return &name;
  return nullptr;
}

double node_flops(const Graph& graph, const Node& node) {
  if (node.op->flops) return node.op->flops(InferContext(graph, node));
  double elements = 0;
  for (const ValueId output : node.outputs)
    elements += static_cast<double>(graph.type(output).shape.elements());
  return elements;
}

}  // namespace artel
