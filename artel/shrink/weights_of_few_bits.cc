#include "artel/shrink/weights_of_few_bits.h"

#include <cmath>
#include <map>

#include "artel/base/error.h"
#include "artel/graph/op.h"

namespace artel::shrink {
namespace {

// How a graph uses a matrix, or a weight with more axes.
struct Use {
  bool only_products = true;  // read only by dense layers and embeddings
  bool by_convolution = false;
  bool in_out = false;  // stored as [in, out] by a dense layer
};

std::map<ValueId, Use> uses_of_weights(const Graph& graph) {
  std::map<ValueId, Use> uses;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    if (graph.type(id).shape.rank() >= 2) uses[id];
  for (const Node& node : graph.nodes())
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto use = uses.find(node.inputs[i]);
      if (use == uses.end()) continue;
      const bool dense = node.op->name == "dense" && i == 1;
      if (!dense && !(node.op->name == "embedding" && i == 1)) use->second.only_products = false;
      if (node.op->name.find("conv") != std::string::npos) use->second.by_convolution = true;
      if (dense && node.attributes.flag("in_out")) use->second.in_out = true;
    }
  return uses;
}

double relative_error(const Tensor& before, const Tensor& after) {
  double change = 0, size = 0;
  for (int64_t i = 0; i < before.elements(); ++i) {
    const double a = before.values<float>()[i], b = after.values<float>()[i];
    change += (a - b) * (a - b);
    size += a * a;
  }
  return size > 0 ? std::sqrt(change / size) : 0;
}

class Shrinker {
 public:
  Shrinker(const Graph& graph, const WeightOptions& options)
      : options_(options), uses_(uses_of_weights(graph)) {
    for (const auto& [id, use] : uses_) ids_[graph.value(id).name] = id;
  }

  void add(const NamedTensor& weight, SmallWeights& result) const {
    const auto id = ids_.find(weight.name);
    const size_t bytes = weight.tensor.bytes();
    result.bytes_before += bytes;
    ShrunkWeight report = {weight.name, weight.tensor.shape(), bytes, bytes};
    if (id == ids_.end())
      result.weights.push_back(weight);
    else
      add_matrix(weight, uses_.at(id->second), report, result);
    result.bytes_after += report.bytes_after;
    if (id != ids_.end()) result.matrices.push_back(std::move(report));
  }

 private:
  void add_matrix(const NamedTensor& weight, const Use& use, ShrunkWeight& report,
                  SmallWeights& result) const {
    const Tensor numbers = weight.tensor.to(DType::f32);
    const bool turn = use.in_out && numbers.shape().rank() == 2;
    const Tensor matrix = turn ? transposed(numbers) : numbers;
    report.left = reason_to_leave(weight.name, use, matrix.shape());
    if (report.left.empty()) {
      QuantisedMatrix small = quantise_rows(matrix, options_.form);
      report.error = relative_error(matrix, expand(small));
      report.bytes_after = small.bytes();
      small.turned = turn;
      append(result.weights, weight.name, small);
    } else {
      result.weights.push_back(weight);
    }
  }

  std::string reason_to_leave(const std::string& name, const Use& use, const Shape& shape) const {
    if (options_.keep_float && options_.keep_float(name)) return "asked for";
    if (use.by_convolution) return "convolutions stay float";
    if (shape.rank() > 2) return "it is not a matrix";
    if (!use.only_products) return "other layers read it";
    if (!can_quantise(shape))
      return fmt::format("its row length is not a multiple of {}", kQuantisedBlock);
    return "";
  }

  const WeightOptions& options_;
  std::map<ValueId, Use> uses_;
  std::map<std::string, ValueId> ids_;
};

}  // namespace

SmallWeights quantise(const Graph& graph, const NamedTensors& weights,
                      const WeightOptions& options) {
  for (const ValueId id : graph.of_kind(ValueKind::parameter)) {
    const std::string& name = graph.value(id).name;
    require(find_tensor(weights, name) != nullptr, ErrorKind::shape,
            "the weights do not fit the model: '{}' is missing", name);
  }
  const Shrinker shrinker(graph, options);
  SmallWeights result;
  for (const NamedTensor& weight : weights) shrinker.add(weight, result);
  return result;
}

}  // namespace artel::shrink
