// artel_bench_onnx FOLDER: writes networks of the zoo and of text layers with random weights as
// FOLDER/NAME.onnx, a random batch as NAME.x.npy, and what Artel computes for it as NAME.y.npy.
#include <cstdio>
#include <filesystem>
#include <string>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/registry.h"
#include "artel/predict/batches.h"
#include "artel/predict/onnx_model.h"
#include "artel/predict/predictor.h"
#include "artel/tensor/npy.h"

namespace {

using namespace artel;

struct Case {
  std::string name;
  Model model;
  TensorType sample;
  int64_t tokens = 0;  // of a network that reads text
};

constexpr int64_t kSamples = 3;

std::vector<Case> cases() {
  const TensorType digit = {DType::f32, {1, 28, 28}}, small = {DType::f32, {3, 32, 32}};
  const TensorType photo = {DType::f32, {3, 64, 64}}, text = {DType::i32, {12}};
  const auto zoo = [](const std::string& name, const TensorType& sample,
                      const nn::ModelOptions& options) {
    return Case{name, nn::model_by_name(name, options), sample, options.vocabulary};
  };
  const auto layers = [](const std::string& name, const std::vector<std::string>& lines,
                         const TensorType& sample, int64_t tokens = 0) {
    return Case{name, nn::parse_layers(lines), sample, tokens};
  };
  const nn::ModelOptions reader = {
      .width = 32, .depth = 2, .heads = 4, .positions = 16, .vocabulary = 50};
  nn::ModelOptions grouped = reader;
  grouped.key_heads = 2;
  return {
      zoo("mlp", digit, {.classes = 10, .width = 64}),
      zoo("lenet5", digit, {.classes = 10}),
      zoo("vgg11_bn", small, {.classes = 10, .small_images = true, .width = 8}),
      zoo("resnet20", small, {.classes = 10, .width = 8}),
      zoo("resnet50", photo, {.classes = 10, .width = 8}),
      zoo("mobilenet_v2", photo, {.classes = 10}),
      zoo("autoencoder", digit, {.width = 32}),
      zoo("conv_autoencoder", digit, {.width = 8}),
      zoo("vit_tiny", small, {.classes = 10, .width = 32, .depth = 2, .heads = 4, .patch = 8}),
      zoo("gpt2", text, reader),
      zoo("llama", text, grouped),
      zoo("bert_masked", text, reader),
      layers("norms",
             {"conv 6 3x3", "leaky_relu", "average_pool 2x2", "flatten", "dense 16", "layer_norm",
              "gelu", "rms_norm", "silu", "dense 5", "log_softmax"},
             small),
      layers(
          "attention",
          {"embedding 50 16", "residual { rms_norm | attention 4 causal rotary no_bias } no_relu",
           "residual { layer_norm | swiglu 24 } no_relu", "dense 50"},
          text, 50),
  };
}

NamedTensors random_weights(const Case& each) {
  const Graph graph = inference_graph(each.model, batch_of(each.sample, 1)).graph;
  NamedTensors weights;
  Random random(1);
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : graph.of_kind(kind)) {
      const std::string name = graph.value(id).whole_name();
      Tensor tensor(graph.type(id).shape);
      for (float& value : tensor.values<float>())
        value = name.ends_with("running_var") ? random.uniform(0.5f, 2) : 0.2f * random.normal();
      weights.push_back({name, tensor});
    }
  return weights;
}

Tensor random_batch(const Case& each) {
  const TensorType type = batch_of(each.sample, kSamples);
  Tensor x(type.shape, type.dtype);
  Random random(2);
  if (type.dtype == DType::f32)
    for (float& value : x.values<float>()) value = random.normal();
  else
    for (int32_t& value : x.values<int32_t>())
      value = static_cast<int32_t>(random.below(static_cast<uint64_t>(each.tokens)));
  return x;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: artel_bench_onnx FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const Case& each : cases()) try {
      const NamedTensors weights = random_weights(each);
      const Tensor x = random_batch(each);
      write_file_atomically(folder / (each.name + ".onnx"),
                            onnx_model(each.model, each.sample, weights, kSamples));
      write_npy(folder / (each.name + ".x.npy"), x);
      write_npy(folder / (each.name + ".y.npy"), Predictor(each.model, each.sample, weights)(x));
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", each.name.c_str(), error.what());
      return 1;
    }
  return 0;
}
