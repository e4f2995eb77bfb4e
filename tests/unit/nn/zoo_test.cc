#include <gtest/gtest.h>

#include <map>
#include <set>

#include "artel/base/error.h"
#include "artel/nn/model.h"
#include "artel/nn/zoo/autoencoder.h"
#include "artel/nn/zoo/classic.h"
#include "artel/nn/zoo/registry.h"
#include "artel/nn/zoo/resnet.h"
#include "artel/nn/zoo/vgg.h"
#include "tests/support/error_of.h"

namespace artel::nn {
namespace {

Graph graph_of(const Layer& network, Shape sample) {
  return std::move(inference_graph(network, {DType::f32, std::move(sample)}).graph);
}

int64_t count_parameters(const Graph& graph) {
  int64_t count = 0;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    count += graph.type(id).shape.elements();
  return count;
}

Shape shape_of(const Graph& graph, const std::string& name) {
  const auto id = graph.find(name);
  return id ? graph.type(*id).shape : Shape{-1};
}

std::string error_of(const std::string& name, const ModelOptions& options = {}) {
  return artel::error_of([&] { model_by_name(name, options); });
}

// The counts that torchvision's documentation and the paper's tables give.
TEST(Zoo, HasThePublishedNumberOfParameters) {
  const std::map<std::string, int64_t> published = {
      {"vgg11", 132'863'336},    {"vgg11_bn", 132'868'840}, {"vgg13", 133'047'848},
      {"vgg13_bn", 133'053'736}, {"vgg16", 138'357'544},    {"vgg16_bn", 138'365'992},
      {"vgg19", 143'667'240},    {"vgg19_bn", 143'678'248}, {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},  {"resnet50", 25'557'032},  {"resnet101", 44'549'160},
      {"resnet152", 60'192'808}};
  for (const auto& [name, count] : published)
    EXPECT_EQ(count_parameters(graph_of(model_by_name(name), {1, 3, 224, 224})), count) << name;
  const std::map<std::string, int64_t> on_cifar = {
      {"resnet20", 269'722}, {"resnet32", 464'154}, {"resnet44", 658'586}, {"resnet56", 853'018}};
  for (const auto& [name, count] : on_cifar)
    EXPECT_EQ(count_parameters(graph_of(model_by_name(name), {1, 3, 32, 32})), count) << name;
  EXPECT_EQ(count_parameters(graph_of(model_by_name("lenet5"), {1, 1, 28, 28})), 61'706);
  EXPECT_EQ(count_parameters(graph_of(model_by_name("mlp"), {1, 784})), 1'863'690);
}

TEST(Zoo, NamesParametersAsTorchvisionDoes) {
  const Graph vgg16_bn = graph_of(vgg(16, {.batch_norm = true}), {2, 3, 224, 224});
  EXPECT_EQ(shape_of(vgg16_bn, "features.0.weight"), (Shape{64, 3, 3, 3}));
  EXPECT_EQ(shape_of(vgg16_bn, "features.1.running_var"), (Shape{64}));
  EXPECT_EQ(shape_of(vgg16_bn, "features.40.bias"), (Shape{512}));
  EXPECT_EQ(shape_of(vgg16_bn, "classifier.0.weight"), (Shape{4096, 25088}));
  EXPECT_EQ(shape_of(vgg16_bn, "classifier.6.bias"), (Shape{1000}));

  const Graph resnet18 = graph_of(resnet(18), {2, 3, 224, 224});
  EXPECT_EQ(shape_of(resnet18, "conv1.weight"), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(shape_of(resnet18, "bn1.running_mean"), (Shape{64}));
  EXPECT_EQ(shape_of(resnet18, "layer2.0.downsample.0.weight"), (Shape{128, 64, 1, 1}));
  EXPECT_EQ(shape_of(resnet18, "layer4.1.bn2.weight"), (Shape{512}));
  EXPECT_EQ(shape_of(resnet18, "layer1.0.downsample.0.weight"), (Shape{-1}));
  EXPECT_EQ(shape_of(resnet18, "fc.weight"), (Shape{1000, 512}));

  const Graph resnet50 = graph_of(resnet(50), {2, 3, 224, 224});
  EXPECT_EQ(shape_of(resnet50, "layer1.0.downsample.1.running_mean"), (Shape{256}));
  EXPECT_EQ(shape_of(resnet50, "layer3.5.conv3.weight"), (Shape{1024, 256, 1, 1}));
  EXPECT_EQ(shape_of(resnet50, "layer3.0.conv1.weight"), (Shape{256, 512, 1, 1}));

  const Graph resnet20 = graph_of(cifar_resnet(20), {2, 3, 32, 32});
  EXPECT_EQ(shape_of(resnet20, "layer3.2.conv2.weight"), (Shape{64, 64, 3, 3}));
  EXPECT_EQ(shape_of(resnet20, "linear.weight"), (Shape{10, 64}));

  const Graph logistic = graph_of(linear(2), {3, 7});
  EXPECT_EQ(shape_of(logistic, "weight"), (Shape{1, 7}));
  EXPECT_EQ(shape_of(logistic, "bias"), (Shape{1}));

  const Graph perceptron = graph_of(mlp({32, 16}), {2, 1, 4, 4});
  EXPECT_EQ(shape_of(perceptron, "0.weight"), (Shape{32, 16}));
  EXPECT_EQ(shape_of(perceptron, "4.bias"), (Shape{10}));
}

TEST(Zoo, HasVariantsForSmallImages) {
  const Graph small_vgg =
      graph_of(model_by_name("vgg11_bn", {.classes = 10, .small_images = true}), {2, 3, 32, 32});
  EXPECT_EQ(shape_of(small_vgg, "classifier.weight"), (Shape{10, 512}));
  EXPECT_EQ(shape_of(small_vgg, "features.0.bias"), (Shape{-1}));
  EXPECT_EQ(shape_of(small_vgg, "features.1.bias"), (Shape{64}));

  Graph small_resnet = graph_of(
      model_by_name("resnet18", {.classes = 7, .small_images = true, .width = 8}), {2, 3, 32, 32});
  EXPECT_EQ(shape_of(small_resnet, "conv1.weight"), (Shape{8, 3, 3, 3}));
  EXPECT_EQ(shape_of(small_resnet, "fc.weight"), (Shape{7, 64}));
  EXPECT_EQ(small_resnet.output("prediction").shape(), (Shape{2, 7}));
}

TEST(Zoo, AutoencodersKeepTheShape) {
  for (const Shape& shape : {Shape{2, 1, 28, 28}, Shape{2, 3, 15, 9}}) {
    EXPECT_EQ(graph_of(autoencoder(), shape).output("prediction").shape(), shape);
    EXPECT_EQ(graph_of(conv_autoencoder({4, 8, 16}), shape).output("prediction").shape(), shape);
  }
  const Graph dense = graph_of(autoencoder({20, 5}), {2, 1, 4, 4});
  EXPECT_EQ(shape_of(dense, "encoder.2.weight"), (Shape{5, 20}));
  EXPECT_EQ(shape_of(dense, "decoder.2.weight"), (Shape{16, 20}));
}

TEST(Zoo, EveryListedModelCanBeBuiltAndDifferentiated) {
  std::set<std::string> names;
  for (const ModelDescription& model : model_list()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_FALSE(model.text.empty());
    const bool reproduces = model.target == ModelTarget::input;
    const int64_t side = model.name == "face_resnet" ? 150 : 32;
    const TensorType x = model.input_type == DType::i32
                             ? TensorType{DType::i32, {2, 16}}
                             : TensorType{DType::f32, {2, 3, side, side}};
    const TensorType y = model.target == ModelTarget::label ? TensorType{DType::i32, {2}} : x;
    if (model.name == "lenet5" || model.name == "bert") continue;  // other tests build them
    ModelOptions options{.width = 32};
    if (model.name == "linear") options = {.classes = 2};
    if (model.name.starts_with("mobilenet") || model.name == "face_resnet") options.width = 0;
    if (model.name.starts_with("gpt2") || model.name.starts_with("bert") ||
        model.name.starts_with("vit") || model.name.starts_with("llama"))
      options.heads = 4;
    const ModelGraph training = training_graph(model_by_name(model.name, options), x, y,
                                               loss_by_name(reproduces ? "mse" : "cross_entropy"));
    EXPECT_EQ(training.graph.gradients().size(),
              training.graph.of_kind(ValueKind::parameter).size())
        << model.name;
  }
}

TEST(Zoo, TransformersHaveTheHeadAndTheHiddenUnitsThatAreAskedFor) {
  const auto graph = [](const std::string& name, ModelOptions options) {
    options.width = 8;
    options.depth = 1;
    options.heads = 2;
    const bool reads_tokens = !name.starts_with("vit");
    return std::move(inference_graph(model_by_name(name, options),
                                     reads_tokens ? TensorType{DType::i32, {2, 6}}
                                                  : TensorType{DType::f32, {2, 3, 16, 16}})
                         .graph);
  };
  const Graph gpt2 = graph("gpt2", {.vocabulary = 11, .hidden = 20, .untied_head = true});
  EXPECT_EQ(shape_of(gpt2, "lm_head.weight"), (Shape{11, 8}));
  EXPECT_EQ(shape_of(gpt2, "h.0.mlp.c_fc.weight"), (Shape{8, 20}));
  EXPECT_EQ(shape_of(graph("gpt2", {}), "lm_head.weight"), (Shape{-1}));
  const Graph bert = graph("bert_masked", {.vocabulary = 11, .hidden = 20, .untied_head = true});
  EXPECT_EQ(shape_of(bert, "cls.predictions.decoder.weight"), (Shape{11, 8}));
  EXPECT_EQ(shape_of(bert, "bert.encoder.layer.0.intermediate.dense.weight"), (Shape{20, 8}));
  EXPECT_EQ(shape_of(graph("vit_tiny", {.hidden = 20}), "blocks.0.mlp.fc1.weight"), (Shape{20, 8}));
}

TEST(Zoo, RefusesWhatItHasNot) {
  EXPECT_EQ(error_of("bert_classifier", {.untied_head = true}),
            "[model 'bert_classifier'] untied_head: this network does not score tokens; leave it "
            "out");
  const std::string activation = error_of("gpt2", {.activation = "gelu_tan"});
  EXPECT_TRUE(
      activation.starts_with("[model 'gpt2'] activation: got \"gelu_tan\", expected one of "))
      << activation;
  EXPECT_TRUE(activation.ends_with("; did you mean 'gelu_tanh'?")) << activation;
  EXPECT_NE(activation.find(" sigmoid, "), activation.npos) << activation;
  EXPECT_EQ(error_of("resnet19").substr(0, 47), "unknown model 'resnet19'; did you mean 'resnet1");
  EXPECT_EQ(error_of("lenet5", {.width = 3}),
            "[model 'lenet5'] width: got 3, but the width of this network is fixed");
  EXPECT_EQ(error_of("mlp", {.small_images = true}),
            "[model 'mlp'] small_images: this network has no such variant; leave it out");
  EXPECT_EQ(error_of("mlp", {.classes = -1}),
            "[model 'mlp'] got -1 classes and width 0, expected positive numbers");
  EXPECT_THROW(vgg(12), Error);
  EXPECT_THROW(resnet(20), Error);
  EXPECT_THROW(cifar_resnet(21), Error);
}

// The numbers of parameters are torchvision's and dlib's.
TEST(Zoo, MobileNetHasPublishedNames) {
  const Graph graph = graph_of(model_by_name("mobilenet_v2"), {1, 3, 224, 224});
  EXPECT_EQ(count_parameters(graph), 3'504'872);
  EXPECT_EQ(shape_of(graph, "features.0.0.weight"), (Shape{32, 3, 3, 3}));
  EXPECT_EQ(shape_of(graph, "features.1.conv.0.0.weight"), (Shape{32, 1, 3, 3}));
  EXPECT_EQ(shape_of(graph, "features.17.conv.1.0.weight"), (Shape{960, 1, 3, 3}));
  EXPECT_EQ(shape_of(graph, "features.17.conv.3.running_var"), (Shape{320}));
  EXPECT_EQ(shape_of(graph, "classifier.1.weight"), (Shape{1000, 1280}));
  const Graph small = graph_of(model_by_name("mobilenet_v2_tf_035"), {1, 3, 224, 224});
  EXPECT_EQ(shape_of(small, "features.0.0.weight"), (Shape{16, 3, 3, 3}));
  EXPECT_EQ(shape_of(small, "features.18.0.weight"), (Shape{1280, 112, 1, 1}));
}

TEST(Zoo, FacesBecomeNumbers) {
  Graph graph = graph_of(model_by_name("face_resnet"), {1, 3, 150, 150});
  EXPECT_EQ(graph.output("prediction").shape(), (Shape{1, 128}));
  EXPECT_EQ(shape_of(graph, "conv256_down_out.conv2.weight"), (Shape{256, 256, 3, 3}));
}

TEST(Zoo, TheOriginalResNetHalvesInItsFirstConvolutions) {
  const Graph theirs = graph_of(model_by_name("resnet50"), {1, 3, 64, 64});
  Graph original = graph_of(model_by_name("resnet50_original"), {1, 3, 64, 64});
  EXPECT_EQ(count_parameters(theirs), count_parameters(original));
  EXPECT_EQ(original.output("prediction").shape(), (Shape{1, 1000}));
}

}  // namespace
}  // namespace artel::nn
