#include "artel/predict/fold_norms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/nn/layers.h"

namespace artel {
namespace {

// Weights that no initialiser would choose: also the statistics of batch norms differ.
NamedTensors some_weights(const Model& model, const TensorType& sample) {
  std::vector<int64_t> extents = {1};
  for (const int64_t extent : sample.shape.extents()) extents.push_back(extent);
  const Graph graph = inference_graph(model, {sample.dtype, Shape(extents)}).graph;
  NamedTensors weights;
  Random random(7);
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : graph.of_kind(kind)) {
      Tensor tensor(graph.type(id).shape);
      for (float& value : tensor.values<float>()) value = random.uniform(0.5f, 1.5f);
      weights.push_back({graph.value(id).whole_name(), tensor});
    }
  return weights;
}

TEST(FoldNorms, TheFunctionStaysTheSame) {
  using namespace nn;
  const Model model =
      sequential({conv(8, {3, 3}, {.padding = {1, 1}, .bias = false}), batch_norm(), relu(),
                  conv(8, {3, 3}, {.padding = {1, 1}, .groups = 8, .bias = false}), batch_norm(),
                  conv(4, {1, 1}), batch_norm(), relu(), flatten(), dense(5)});
  const TensorType sample = {DType::f32, {3, 6, 6}};
  const NamedTensors weights = some_weights(model, sample);
  Tensor pictures({2, 3, 6, 6});
  Random random(1);
  for (float& value : pictures.values<float>()) value = random.normal();
  const Tensor plain = Predictor(model, sample, weights)(pictures);
  const Tensor folded = folded_predictor(model, sample, weights, 1)(pictures);
  for (int64_t i = 0; i < plain.elements(); ++i)
    EXPECT_NEAR(folded.values<float>()[i], plain.values<float>()[i],
                1e-5 * std::abs(plain.values<float>()[i]) + 1e-4);
}

TEST(FoldNorms, OnlyConvolutionsWithoutABiasTakeThemOver) {
  using namespace nn;
  const Model model =
      sequential({conv(4, {1, 1}), batch_norm(), conv(4, {1, 1}, {.bias = false}), batch_norm()});
  const Graph graph =
      inference_graph(folding_norms(model.network()), {DType::f32, {1, 3, 2, 2}}).graph;
  EXPECT_TRUE(graph.find("1.running_var").has_value());
  EXPECT_FALSE(graph.find("3.running_var").has_value());
  EXPECT_TRUE(graph.find("3.bias").has_value());
}

TEST(FoldNorms, AMissingWeightIsNamed) {
  const Model model = nn::sequential({nn::conv(4, {1, 1}, {.bias = false}), nn::batch_norm()});
  const TensorType sample = {DType::f32, {3, 2, 2}};
  NamedTensors weights = some_weights(model, sample);
  std::erase_if(weights, [](const NamedTensor& w) { return w.name == "1.running_mean"; });
  EXPECT_THROW(fold_norms(model, sample, weights), Error);
}

}  // namespace
}  // namespace artel
