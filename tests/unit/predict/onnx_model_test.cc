// Networks as ONNX models: what the file holds, and what is refused. Numbers are compared with ONNX
// Runtime by bench/run shrink onnx.
#include "artel/predict/onnx_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/error.h"
#include "artel/checkpoint/onnx.h"
#include "artel/nn/parse_layers.h"
#include "artel/tensor/quantised.h"
#include "tests/support/error_of.h"
#include "tests/support/weights.h"

namespace artel {
namespace {

const TensorType kPicture = {DType::f32, {3, 8, 8}};

Model small_network() {
  return nn::parse_layers({"conv 4 3x3 padding 1", "batch_norm", "relu", "flatten", "dense 10"});
}

std::string problem_of(const Model& model, const TensorType& sample, const NamedTensors& weights) {
  return error_of([&] { onnx_model(model, sample, weights); });
}

TEST(OnnxModel, HoldsTheWeightsUnderTheirNames) {
  const NamedTensors weights = tests::initial_weights(small_network(), kPicture, 3);
  const Bytes file = make_bytes(onnx_model(small_network(), kPicture, weights, 2), "model.onnx");
  EXPECT_TRUE(checkpoint::is_onnx(file));
  const NamedTensors read =
      checkpoint::parse_onnx(file, [](const std::string&) { return Bytes(); });
  for (const NamedTensor& weight : weights) {
    const Tensor* const found = find_tensor(read, weight.name);
    ASSERT_NE(found, nullptr) << weight.name;
    EXPECT_EQ(found->shape(), weight.tensor.shape());
    EXPECT_EQ(std::memcmp(found->raw(), weight.tensor.raw(), found->bytes()), 0) << weight.name;
  }
  for (const char* op : {"Conv", "BatchNormalization", "Relu", "MatMul", "prediction"})
    EXPECT_NE(file.text().find(op), std::string_view::npos) << op;
}

TEST(OnnxModel, QuantisedWeightsBecomeNumbers) {
  const Model model = nn::parse_layers({"dense 4"});
  const TensorType sample = {DType::f32, {32}};
  NamedTensors weights = tests::initial_weights(model, sample, 3), small;
  for (const NamedTensor& weight : weights)
    if (weight.tensor.shape().rank() == 2)
      append(small, weight.name, quantise_rows(weight.tensor, {4}));
    else
      small.push_back(weight);
  EXPECT_EQ(onnx_model(model, sample, small), onnx_model(model, sample, expand_all(small)));
}

TEST(OnnxModel, CodesOf8BitsStay) {
  const Model model = nn::parse_layers({"dense 64"});
  const TensorType sample = {DType::f32, {96}};
  const NamedTensors weights = tests::initial_weights(model, sample, 3);
  const Tensor& weight = *find_tensor(weights, "0.weight");
  NamedTensors small = {{"0.bias", *find_tensor(weights, "0.bias")}};
  append(small, "0.weight", quantise_rows(weight, {8}));
  const std::string file = onnx_model(model, sample, small);
  EXPECT_NE(file.find("DequantizeLinear"), std::string::npos);
  EXPECT_LT(file.size(), onnx_model(model, sample, weights).size() / 2);
  const QuantisedMatrix matrix = find_quantised(small, "0.weight");
  const std::string codes(reinterpret_cast<const char*>(matrix.codes.raw()), matrix.codes.bytes());
  EXPECT_NE(file.find(codes), std::string::npos);
  const Tensor scales = matrix.scales.to(DType::f32);
  EXPECT_NE(file.find({reinterpret_cast<const char*>(scales.raw()), scales.bytes()}),
            std::string::npos);
  // Groups within a row have no equivalent.
  NamedTensors groups = {{"0.bias", *find_tensor(weights, "0.bias")}};
  append(groups, "0.weight", quantise_rows(weight, {8, 32}));
  EXPECT_EQ(onnx_model(model, sample, groups), onnx_model(model, sample, expand_all(groups)));
}

TEST(OnnxModel, SaysWhatItCannotWrite) {
  const Model recurrent = nn::parse_layers({"embedding 9 8", "lstm 4", "dense 9"});
  const TensorType text = {DType::i32, {5}};
  const std::string problem =
      problem_of(recurrent, text, tests::initial_weights(recurrent, text, 1));
  EXPECT_NE(problem.find("export of the op 'lstm' is not supported"), std::string::npos) << problem;
  EXPECT_NE(problem_of(small_network(), kPicture, {}).find("is missing"), std::string::npos);
}

}  // namespace
}  // namespace artel
