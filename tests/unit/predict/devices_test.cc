// Predictions and decoding on an OpenCL device, compared with the processor.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/nn/layers.h"
#include "artel/nn/recurrent.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "artel/predict/batches.h"
#include "artel/predict/decoder.h"
#include "artel/predict/predictor.h"
#include "tests/support/opencl.h"
#include "tests/support/weights.h"

namespace artel {
namespace {

void expect_nearly_equal(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  for (size_t i = 0; i < static_cast<size_t>(got.elements()); ++i)
    ASSERT_NEAR(got.values<float>()[i], expected.values<float>()[i], 2e-5) << i;
}

// More rows than a chunk, on several threads.
TEST(PredictionOnOpenCl, MatchesThatOfTheProcessor) {
  if (!tests::opencl_device()) return;
  const TensorType sample = {DType::f32, {2, 5, 5}};
  const Model model = nn::sequential({nn::conv(3, {3, 3}), nn::batch_norm(), nn::relu(),
                                      nn::flatten(), nn::dropout(0.5), nn::dense(4)});
  const NamedTensors weights = tests::initial_weights(model, sample, 1);
  Predictor here(model, sample, weights, 2), there(model, sample, weights, 2, "opencl:0");
  Tensor rows(batch_of(sample, 150).shape);
  Random random{3};
  for (float& value : rows.values<float>()) value = random.normal();
  const Tensor first = there(rows);
  expect_nearly_equal(first, here(rows));
  expect_nearly_equal(there(rows.rows(64, 128)), first.rows(64, 128));
}

// Attention with a cache runs on the processor, everything else on the device.
TEST(DecodingOnOpenCl, MatchesThatOfTheProcessor) {
  if (!tests::opencl_device()) return;
  for (const bool llama : {false, true}) {
    const Model model =
        llama ? Model(nn::llama({.vocabulary = 37,
                                 .positions = 24,
                                 .width = 64,
                                 .depth = 2,
                                 .heads = 4,
                                 .key_heads = 2,
                                 .hidden = 96}))
              : Model(nn::gpt2(
                    {.vocabulary = 37, .positions = 24, .width = 32, .depth = 2, .heads = 4}));
    const NamedTensors weights = tests::initial_weights(model, {DType::i32, {4}}, 5);
    Decoder here(model, weights, 2), there(model, weights, 2, 0, "opencl:0");
    for (const std::vector<int32_t>& tokens :
         {std::vector<int32_t>{3, 1, 4, 1, 5}, std::vector<int32_t>{9}, std::vector<int32_t>{2}})
      expect_nearly_equal(there.read(tokens), here.read(tokens));
  }
}

// A network without a cache reads the whole text again, on the device.
TEST(DecodingOnOpenCl, RunsNetworksWithoutACache) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  const Model model = nn::sequential({nn::embedding(37, 16), nn::lstm(24), nn::dense(37)});
  const NamedTensors weights = tests::initial_weights(model, {DType::i32, {12}}, 5);
  Decoder here(model, weights, 1, 12), there(model, weights, 1, 12, "opencl:0");
  const int64_t before = device->copied().from_device;
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5};
  expect_nearly_equal(there.read(tokens), here.read(tokens));
  EXPECT_GT(device->copied().from_device, before);
}

}  // namespace
}  // namespace artel
