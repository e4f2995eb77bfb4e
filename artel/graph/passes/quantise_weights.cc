#include "artel/graph/passes/quantise_weights.h"

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/tensor/quantised.h"

namespace artel {
namespace {

class WeightQuantiser {
 public:
  WeightQuantiser(const Graph& source, const std::map<std::string, QuantisedType>& types)
      : source_(source), map_(source.values().size()) {
    for (size_t i = 0; i < source.values().size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const ValueData& value = source.value(id);
      if (value.kind == ValueKind::computed) continue;
      const auto type = types.find(value.name);
      if (value.kind == ValueKind::parameter && type != types.end())
        matrices_[id] = {matrix_of(value.name, type->second), type->second.turned};
      else
        map_[id] = target_.adopt(source, id);
    }
  }

  Graph run() {
    for (const Node& node : source_.nodes()) copy(node);
    for (const auto& [name, value] : source_.outputs()) target_.set_output(name, map_[value]);
    return std::move(target_);
  }

 private:
  QuantisedValue matrix_of(const std::string& name, const QuantisedType& type) {
    const auto part = [&](std::string_view suffix, const TensorType& of) {
      return target_.parameter(name + std::string(suffix), of.shape, of.dtype);
    };
    return {part(type.turned ? kTurnedCodes : kCodes, type.codes), part(kScales, type.scales),
            type.offsets ? part(kOffsets, type.scales) : Value()};
  }

  void copy(const Node& node) {
    std::vector<Value> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(map_[input]);
    const auto matrix = node.inputs.size() > 1 ? matrices_.find(node.inputs[1]) : matrices_.end();
    for (size_t i = 0; i < node.inputs.size(); ++i) check_use(node, i, matrix != matrices_.end());
    if (matrix == matrices_.end()) {
      const std::vector<Value> results = target_.adopt(node, inputs);
      for (size_t i = 0; i < results.size(); ++i) map_[node.outputs[i]] = results[i];
      return;
    }
    const Graph::Scope scope(target_, node.name);
    const auto& [stored, turned] = matrix->second;
    Value y = node.op->with_quantised(inputs, stored);
    if (const std::string* const activation = applied_activation(node)) y = unary(*activation, y);
    const TensorType& expected = source_.type(node.outputs[0]);
    require(y.type() == expected && turned == node.attributes.flag("in_out"), ErrorKind::shape,
            "the quantised weight '{}' does not fit the model: the layer gives {}, expected {}",
            source_.value(node.inputs[1]).name, to_string(y.type()), to_string(expected));
    map_[node.outputs[0]] = y;
  }

  void check_use(const Node& node, size_t input, bool replaced) const {
    if (!matrices_.contains(node.inputs[input])) return;
    require(replaced && node.op->with_quantised && input == 1, ErrorKind::unsupported,
            "the weight '{}' is quantised, but {} of layer '{}' reads it as numbers; keep it float",
            source_.value(node.inputs[input]).name, node.op->name, node.name);
  }

  const Graph& source_;
  Graph target_;
  std::vector<Value> map_;
  struct Stored {
    QuantisedValue matrix;
    bool turned;
  };
  std::map<ValueId, Stored> matrices_;
};

}  // namespace

Graph quantise_weights(const Graph& graph, const std::map<std::string, QuantisedType>& types) {
  return WeightQuantiser(graph, types).run();
}

}  // namespace artel
