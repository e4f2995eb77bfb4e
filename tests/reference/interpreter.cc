#include "tests/reference/interpreter.h"

#include <algorithm>
#include <deque>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/graph/op.h"
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

const std::map<std::string, Rule, std::less<>>& rules() {
  static const auto all = [] {
    std::map<std::string, Rule, std::less<>> table;
    for (auto* subject :
         {elementwise_rules, product_rules, convolution_rules, pooling_rules, normalisation_rules,
          dropout_rules, embedding_rules, attention_rules, quantised_rules, recurrence_rules,
          shape_rules, reduction_rules, loss_rules, class_rules, shard_rules})
      for (const Rule& rule : subject())
        require(table.emplace(rule.name, rule).second, ErrorKind::internal,
                "[reference] op '{}' has two rules", rule.name);
    return table;
  }();
  return all;
}

const Rule& rule_of(const Node& node) {
  const auto found = rules().find(node.op->name);
  require(found != rules().end(), ErrorKind::unsupported,
          "[reference] layer '{}': op '{}' has no rule; add one under tests/reference", node.name,
          node.op->name);
  return found->second;
}

Array leaf_of(const Graph& graph, ValueId id, const Leaves& leaves) {
  const ValueData& value = graph.value(id);
  if (value.kind == ValueKind::constant) return from_tensor(graph.constant_data(id));
  const auto found = leaves.find(value.name);
  require(found != leaves.end(), ErrorKind::not_found, "[reference] leaf '{}': got no value",
          value.name);
  require(found->second.shape == value.type.shape, ErrorKind::shape,
          "[reference] leaf '{}': got {}, expected {}", value.name, to_string(found->second.shape),
          to_string(value.type.shape));
  return found->second;
}

void check_shape(const Node& node, const char* what, size_t i, const Array& got,
                 const Shape& expected) {
  require(got.shape == expected && static_cast<int64_t>(got.data.size()) == expected.elements(),
          ErrorKind::internal,
          "[reference] layer '{}': {}: {} {} has shape {} and {} elements, expected {}", node.name,
          node.op->name, what, i, to_string(got.shape), got.data.size(), to_string(expected));
}

// Which values lie on a path from `wrt`.
std::vector<bool> dependents(const Graph& graph, const std::vector<ValueId>& wrt) {
  std::vector<bool> depends(graph.values().size(), false);
  for (const ValueId id : wrt) depends[id] = true;
  for (const Node& node : graph.nodes())
    for (const ValueId input : node.inputs)
      if (depends[input])
        for (const ValueId output : node.outputs) depends[output] = true;
  return depends;
}

// The values that readers get if noise is added: their own disturbed copies.
class Readings {
 public:
  explicit Readings(Disturbance& disturbance) : disturbance_(disturbance) {}

  void disturb(Array& array) {
    if (disturbance_.none()) return;
    for (double& value : array.data) value = disturbance_.apply(value);
  }

  Array* of(Array& value, bool floating) {
    if (disturbance_.none() || !floating) return &value;
    copies_.push_back(value);
    disturb(copies_.back());
    return &copies_.back();
  }

 private:
  Disturbance& disturbance_;
  std::deque<Array> copies_;
};

void add_to(Array& sum, const Array& term) {
  if (sum.data.empty()) {
    sum = term;
    return;
  }
  for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += term.data[i];
}

}  // namespace

std::vector<Array> run(const Graph& graph, const Leaves& leaves, const RandomKey& key,
                       const Noise& noise) {
  Disturbance disturbance(noise);
  std::vector<Array> values(graph.values().size());
  for (ValueId id = 0; id < static_cast<ValueId>(values.size()); ++id)
    if (graph.value(id).kind != ValueKind::computed) values[id] = leaf_of(graph, id, leaves);
  for (const Node& node : graph.nodes()) {
    Readings readings(disturbance);
    Call call{graph, node, {}, key, disturbance};
    for (const ValueId input : node.inputs)
      call.inputs.push_back(readings.of(values[input], is_floating(graph.type(input).dtype)));
    Arrays results = rule_of(node).forward(call);
    require(results.size() == node.outputs.size(), ErrorKind::internal,
            "[reference] layer '{}': {} gave {} results, expected {}", node.name, node.op->name,
            results.size(), node.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      check_shape(node, "result", i, results[i], graph.type(node.outputs[i]).shape);
      if (is_floating(graph.type(node.outputs[i]).dtype)) readings.disturb(results[i]);
      values[node.outputs[i]] = std::move(results[i]);
    }
  }
  return values;
}

std::vector<Array> gradients(const Graph& graph, const std::vector<Array>& values, ValueId loss,
                             const std::vector<ValueId>& wrt, const RandomKey& key,
                             const Noise& noise) {
  Disturbance disturbance({noise.size, noise.seed + 1});
  require(graph.type(loss).shape.elements() == 1, ErrorKind::shape,
          "[reference] the loss has shape {}, expected a scalar",
          to_string(graph.type(loss).shape));
  const std::vector<bool> depends = dependents(graph, wrt);
  std::vector<Array> results(graph.values().size());  // empty: no path to the loss so far
  results[loss] = {graph.type(loss).shape, {1.0}};
  for (auto id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    bool reached = false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const bool leads = depends[node.outputs[i]] && !results[node.outputs[i]].data.empty();
      require(!leads || i == 0 || rule_of(node).of_all_results, ErrorKind::unsupported,
              "[reference] layer '{}': {}: the loss depends on result {}, expected only the first",
              node.name, node.op->name, i);
      reached = reached || leads;
    }
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return is_floating(graph.type(input).dtype);
    });
    if (!reached || !any) continue;  // whole numbers have no gradient
    const Rule& rule = rule_of(node);
    require(static_cast<bool>(rule.backward), ErrorKind::unsupported,
            "[reference] layer '{}': op '{}' has no gradient rule", node.name, node.op->name);
    Readings readings(disturbance);
    Call call{graph, node, {}, key, disturbance};
    // Gradient rules only read their inputs.
    const auto seen = [&](ValueId id) {
      return readings.of(const_cast<Array&>(values[id]), is_floating(graph.type(id).dtype));
    };
    for (const ValueId input : node.inputs) call.inputs.push_back(seen(input));
    for (const ValueId output : node.outputs) call.outputs.push_back(seen(output));
    for (const ValueId output : node.outputs) call.gradients.push_back(&results[output]);
    Arrays parts = rule.backward(call);
    require(parts.size() == node.inputs.size(), ErrorKind::internal,
            "[reference] layer '{}': {} gave {} gradients, expected {}", node.name, node.op->name,
            parts.size(), node.inputs.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].data.empty() || !depends[node.inputs[i]]) continue;
      check_shape(node, "gradient", i, parts[i], graph.type(node.inputs[i]).shape);
      readings.disturb(parts[i]);
      add_to(results[node.inputs[i]], parts[i]);
    }
  }
  std::vector<Array> chosen;
  for (const ValueId id : wrt)
    chosen.push_back(results[id].data.empty() ? zeros(graph.type(id).shape) : results[id]);
  return chosen;
}

std::vector<std::string> forward_rules() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  return names;
}

std::vector<std::string> gradient_rules() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules())
    if (rule.backward) names.push_back(name);
  return names;
}

}  // namespace artel::reference
