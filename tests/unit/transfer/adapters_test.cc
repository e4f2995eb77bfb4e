#include "artel/nn/adapters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/nn/layers.h"
#include "artel/nn/zoo/registry.h"
#include "artel/predict/batches.h"
#include "artel/predict/predictor.h"

namespace artel::nn {
namespace {

NamedTensors initial_weights(const Model& model, const TensorType& sample) {
  const ModelGraph graph = inference_graph(model, batch_of(sample, 1));
  NamedTensors weights;
  for (const auto& [name, initialiser] : graph.initialisers)
    weights.push_back(
        {name, initial_value(5, name, graph.graph.type(graph.graph.find(name).value()).shape,
                             initialiser)});
  return weights;
}

void expect_merged(const Model& plain, const TensorType& sample, const Tensor& x, bool in_out) {
  const AdapterOptions options = parse_adapters("lora 4");
  EXPECT_EQ(options.scale(), 2);
  const Model adapted = with_adapters(plain, options);
  NamedTensors weights = initial_weights(adapted, sample);
  const Tensor before = Predictor(plain, sample, weights)(x);
  const Tensor first = Predictor(adapted, sample, weights)(x);
  for (int64_t i = 0; i < before.elements(); ++i)  // it begins as it was
    EXPECT_NEAR(first.values<float>()[i], before.values<float>()[i], 1e-5);
  Random random{8};
  int changed = 0;
  for (NamedTensor& weight : weights)
    if (weight.name.starts_with(kAdapterPrefix) && weight.name.ends_with(".b")) {
      ++changed;
      for (float& value : weight.tensor.values<float>()) value = 0.1f * random.normal();
    }
  EXPECT_GT(changed, 3);
  const Tensor with = Predictor(adapted, sample, weights)(x);
  const NamedTensors merged = merge_adapters(weights, options, in_out);
  for (const NamedTensor& weight : merged) EXPECT_FALSE(weight.name.starts_with(kAdapterPrefix));
  const Tensor without = Predictor(plain, sample, merged)(x);
  double largest = 0, moved = 0;
  for (int64_t i = 0; i < with.elements(); ++i) {
    largest =
        std::max<double>(largest, std::abs(with.values<float>()[i] - without.values<float>()[i]));
    moved = std::max<double>(moved, std::abs(with.values<float>()[i] - before.values<float>()[i]));
  }
  EXPECT_LT(largest, 1e-4);
  EXPECT_GT(moved, 1e-2);
}

TEST(Adapters, MergedAreTheSameNetwork) {
  const TensorType images = {DType::f32, {3, 16, 16}};
  Tensor x({2, 3, 16, 16});
  Random random{2};
  for (float& value : x.values<float>()) value = random.normal();
  expect_merged(
      model_by_name("vit_tiny", {.classes = 5, .width = 24, .depth = 2, .heads = 3, .patch = 4}),
      images, x, false);
  const Tensor tokens = Tensor::from<int32_t>({1, 6}, {1, 4, 2, 9, 3, 7});
  expect_merged(
      model_by_name("gpt2",
                    {.width = 16, .depth = 2, .heads = 2, .positions = 8, .vocabulary = 11}),
      {DType::i32, {6}}, tokens, true);
}

TEST(Adapters, AreRefusedWhereThereIsNothingToAdapt) {
  EXPECT_THROW(parse_adapters("lora"), Error);
  EXPECT_THROW(parse_adapters("lora 0"), Error);
  EXPECT_THROW(parse_adapters("rank 8"), Error);
  EXPECT_EQ(parse_adapters("lora 8 8").scale(), 1);
  const Model plain = sequential({flatten(), dense(3)});
  EXPECT_THROW(inference_graph(with_adapters(plain, {}), {DType::f32, {1, 4}}), Error);
}

}  // namespace
}  // namespace artel::nn
