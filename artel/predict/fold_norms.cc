#include "artel/predict/fold_norms.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/nn/layers.h"
#include "artel/predict/batches.h"

namespace artel {
namespace {

// A folded convolution: the name of its weights, and the name of the batch norm.
struct FoldedNorm {
  std::string weight, module;
};

std::vector<FoldedNorm> folded_norms(const Graph& folded, const Graph& plain) {
  std::vector<FoldedNorm> all;
  constexpr std::string_view kBias = ".bias";
  for (const Node& node : folded.nodes()) {
    if (node.op->name != "conv2d" || node.inputs.size() != 3) continue;
    const std::string bias = folded.value(node.inputs[2]).whole_name();
    if (!bias.ends_with(kBias)) continue;
    const std::string module = bias.substr(0, bias.size() - kBias.size());
    if (!plain.find(module + ".running_var")) continue;  // the convolution's own bias
    all.push_back({folded.value(node.inputs[1]).whole_name(), module});
  }
  return all;
}

}  // namespace

NamedTensors fold_norms(const Model& model, const TensorType& sample, NamedTensors weights) {
  const double epsilon = nn::BatchNormLayerOptions().epsilon;
  const TensorType one = batch_of(sample, 1);
  const ModelGraph plain = inference_graph(model, one);
  const ModelGraph folded = inference_graph(nn::folding_norms(model.network()), one);
  const auto find = [&](const std::string& name) -> NamedTensor& {
    const auto found = std::ranges::find(weights, name, &NamedTensor::name);
    require(found != weights.end(), ErrorKind::shape,
            "the weights do not fit the model: '{}' is missing", name);
    return *found;
  };
  for (const FoldedNorm& norm : folded_norms(folded.graph, plain.graph)) {
    const Tensor scale = find(norm.module + ".weight").tensor.to(DType::f32),
                 shift = find(norm.module + ".bias").tensor.to(DType::f32),
                 mean = find(norm.module + ".running_mean").tensor.to(DType::f32),
                 variance = find(norm.module + ".running_var").tensor.to(DType::f32);
    NamedTensor& convolution = find(norm.weight);
    Tensor weight = convolution.tensor.to(DType::f32);
    const int64_t channels = weight.shape()[0];
    for (const Tensor* part : {&scale, &shift, &mean, &variance})
      require(part->elements() == channels, ErrorKind::shape,
              "the weights do not fit the model: batch norm '{}' has {} channels, expected {}",
              norm.module, part->elements(), channels);
    Tensor bias({channels});
    const int64_t each = weight.elements() / channels;
    for (int64_t i = 0; i < channels; ++i) {
      const double factor =
          scale.values<float>()[i] / std::sqrt(double{variance.values<float>()[i]} + epsilon);
      for (float& value : weight.values<float>().subspan(i * each, each))
        value = static_cast<float>(value * factor);
      bias.values<float>()[i] =
          static_cast<float>(shift.values<float>()[i] - mean.values<float>()[i] * factor);
    }
    convolution.tensor = std::move(weight);
    find(norm.module + ".bias").tensor = std::move(bias);
  }
  return weights;
}

Predictor folded_predictor(const Model& model, const TensorType& sample,
                           const NamedTensors& weights, int threads) {
  return {nn::folding_norms(model.network()), sample, fold_norms(model, sample, weights), threads};
}

}  // namespace artel
