#include "artel/graph/op.h"

#include <map>
#include <mutex>

#include "artel/base/text.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, OpDefinition, std::less<>> ops;

  Registry() {
    for (OpDefinition& op : builtin_ops()) {
      std::string name = op.name;
      ops.emplace(std::move(name), std::move(op));
    }
  }
};

// The set of op names is the language that graphs are written in: one for the program.
Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

void register_op(OpDefinition definition) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::string name = definition.name;
  const bool added = r.ops.emplace(name, std::move(definition)).second;
  require(added, ErrorKind::invalid_argument, "op '{}' is registered already", name);
}

const OpDefinition& find_op(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.ops.find(name);
  if (found != r.ops.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, op] : r.ops) names.push_back(known);
  fail(ErrorKind::not_found, "unknown op '{}'{}", name, did_you_mean(name, names));
}

void InferContext::reject(const std::string& reason) const {
  fail(ErrorKind::shape, "[layer '{}'] {}: {}", node_.name, node_.op->name, reason);
}

void InferContext::check_inputs(int least, int most) const {
  check(inputs() >= least && inputs() <= most, "got {} inputs, expected {}", inputs(),
        least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most));
}

double node_flops(const Graph& graph, const Node& node) {
  if (node.op->flops) return node.op->flops(InferContext(graph, node));
  double elements = 0;
  for (const ValueId output : node.outputs)
    elements += static_cast<double>(graph.type(output).shape.elements());
  return elements;
}

}  // namespace artel
