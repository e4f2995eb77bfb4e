#include "artel/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/model.h"
#include "tests/support/error_of.h"

namespace artel::nn {
namespace {

const TensorType kImages = {DType::f32, {2, 3, 8, 8}};

std::string error_of(const Layer& layer, const TensorType& x) {
  return artel::error_of([&] { inference_graph(layer, x); });
}

int count_nodes(const Graph& graph, const std::string& op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op->name == op;
  return count;
}

TEST(Layers, AreNamedByIndexOrByName) {
  const Layer network =
      sequential({named("stem", conv(4, {3, 3})), relu(), chain({named("norm", batch_norm())}),
                  flatten(), sequential({dense(5), dense(2)})});
  const Graph graph = std::move(inference_graph(network, kImages).graph);
  for (const char* name :
       {"stem.weight", "stem.bias", "norm.weight", "norm.running_mean", "4.0.weight", "4.1.bias"})
    EXPECT_TRUE(graph.find(name)) << name;
}

TEST(Layers, NameThemselvesInErrors) {
  EXPECT_EQ(
      error_of(sequential({relu(), dense(3)}), {DType::f32, {4}}),
      "[layer '1'] dense: got input [4], expected [batch, features]; put a flatten before it");
  EXPECT_EQ(error_of(named("stem", conv(4, {3, 3}, {.groups = 0})), kImages),
            "[layer 'stem'] groups: got 0, expected at least 1");
  EXPECT_EQ(error_of(named("block", residual(conv(4, {3, 3}))), kImages),
            "[layer 'block'] residual: the body gives [2, 4, 6, 6], the shortcut [2, 3, 8, 8]; "
            "give the shortcut a convolution that changes the shape");
}

// As a function of a user may by mistake.
TEST(Layers, MayNotReturnNothing) {
  const Layer nothing("mine", [](Build&, Value) { return Value(); });
  EXPECT_EQ(error_of(sequential({relu(), named("own", nothing)}), kImages),
            "[layer 'own'] mine: returned an empty value, expected its output");
  const auto error = [](const Loss& loss, std::vector<Metric> metrics) -> std::string {
    return artel::error_of([&] {
      training_graph(sequential({flatten(), dense(3)}), kImages, {DType::i32, {2}}, loss, {},
                     metrics);
    });
  };
  EXPECT_EQ(error([](Value, Value) { return Value(); }, {}),
            "loss: returned an empty value, expected a scalar");
  EXPECT_EQ(error(loss_by_name("cross_entropy"),
                  {{.name = "mine", .sums = [](Value, Value) { return Value(); }}}),
            "[metric 'mine'] returned an empty value, expected its sums");
}

// Unused layers are removed from every kind of graph, or their weights would have two layouts.
TEST(Layers, ThatNobodyUsesAreNotComputed) {
  const Layer unused("unused", [](Build& build, Value x) {
    conv(4, {3, 3})(build, x);
    return x;
  });
  const Layer network = sequential({unused, flatten(), dense(3)});
  EXPECT_EQ(count_nodes(inference_graph(network, kImages).graph, "conv2d"), 0);
  const ModelGraph training =
      training_graph(network, kImages, {DType::i32, {2}}, loss_by_name("cross_entropy"));
  EXPECT_EQ(count_nodes(training.graph, "conv2d"), 0);
}

TEST(Losses, RefuseClassesInAnotherArrangement) {
  const auto error = [](const TensorType& y) -> std::string {
    Graph graph;
    const Value scores = graph.input("p", {DType::f32, {5, 3, 2, 4}});
    return artel::error_of([&] { loss_by_name("cross_entropy")(scores, graph.input("y", y)); });
  };
  EXPECT_EQ(error({DType::i32, {5, 3, 2}}), "");
  EXPECT_EQ(error({DType::f32, {5, 3, 2, 4}}), "");
  EXPECT_EQ(
      error({DType::i32, {5, 2, 3}}),
      "[loss] got classes [5, 2, 3] for the network's output [5, 3, 2, 4], expected [5, 3, 2]");
  EXPECT_EQ(error({DType::f32, {5, 2, 3, 4}}),
            "[loss] got shares [5, 2, 3, 4] for the network's output [5, 3, 2, 4], expected "
            "[5, 3, 2, 4]");
}

TEST(Losses, OnlyClassesCanBeSmoothed) {
  EXPECT_NO_THROW(loss_by_name("cross_entropy", 0.1));
  EXPECT_NO_THROW(loss_by_name("mse"));
  EXPECT_THROW(loss_by_name("mse", 0.1), Error);
  EXPECT_THROW(make_loss(Loss([](Value p, Value) { return p; }), {.label_smoothing = 0.1}), Error);
}

TEST(Layers, SayWhichGroupsDoNotDivideTheChannels) {
  EXPECT_EQ(error_of(named("up", conv_transpose(4, {3, 3}, {.groups = 3, .bias = true})), kImages),
            "[layer 'up'] groups: got 3 with 3 input and 4 output channels, expected a number that "
            "divides both");
  EXPECT_EQ(error_of(conv_transpose(4, {3, 3}, {.groups = 2, .bias = false}), kImages),
            "[layer ''] groups: got 2 with 3 input and 4 output channels, expected a number that "
            "divides both");
  EXPECT_EQ(error_of(named("stem", conv(4, {3, 3}, {.groups = 4})), kImages),
            "[layer 'stem'] groups: got 4 with 3 input and 4 output channels, expected a number "
            "that divides both");
}

// As PyTorch: "Expected more than 1 value per channel when training".
TEST(Layers, BatchNormNeedsTwoValuesInTraining) {
  const Layer rows = sequential({named("norm", batch_norm()), dense(3)});
  const Layer images = sequential({batch_norm(), flatten(), dense(3)});
  const auto error = [](const Layer& network, Shape x) -> std::string {
    const TensorType y = {DType::i32, {x[0]}};
    return artel::error_of([&] {
      training_graph(network, {DType::f32, std::move(x)}, y, loss_by_name("cross_entropy"));
    });
  };
  EXPECT_EQ(error(rows, {1, 4}),
            "[layer 'norm'] batch_norm: got [1, 4] in training, one value for each channel, "
            "expected more; the batch of a lane is 1: try fewer lanes (cluster.lanes) or a larger "
            "train.batch_size");
  EXPECT_NE(error(images, {1, 4, 1, 1}), "");
  EXPECT_EQ(error(rows, {2, 4}), "");
  EXPECT_EQ(error(images, {1, 4, 1, 2}), "");
  inference_graph(rows, {DType::f32, {1, 4}});
}

TEST(Layers, DropOnlyInTraining) {
  const Layer network = sequential({flatten(), dropout(0.5), dense(3)});
  EXPECT_EQ(count_nodes(inference_graph(network, kImages).graph, "dropout"), 0);
  const ModelGraph training =
      training_graph(network, kImages, {DType::i32, {2}}, loss_by_name("cross_entropy"));
  EXPECT_EQ(count_nodes(training.graph, "dropout"), 1);
}

TEST(Layers, TrainOnlyWhatIsAskedFor) {
  const Layer network = sequential({flatten(), dense(4), relu(), dense(3)});
  const ModelGraph training =
      training_graph(network, kImages, {DType::i32, {2}}, loss_by_name("cross_entropy"),
                     [](const std::string& name) { return name.starts_with("3."); });
  ASSERT_EQ(training.graph.gradients().size(), 2u);
  EXPECT_EQ(training.graph.value(training.graph.gradients()[0].parameter).name, "3.weight");
}

TEST(Initialisers, HaveTheirSpread) {
  const Shape shape = {64, 32, 3, 3};
  const auto deviation = [&](const Initialiser& initialiser) {
    const Tensor tensor = initial_value(1, "w", shape, initialiser);
    double sum = 0;
    for (const float x : tensor.values<float>()) sum += x * x;
    return std::sqrt(sum / static_cast<double>(tensor.elements()));
  };
  EXPECT_NEAR(deviation(constant(2)), 2, 1e-6);
  EXPECT_NEAR(deviation(normal(0.3f)), 0.3, 0.01);
  EXPECT_NEAR(deviation(uniform(-1, 1)), 1 / std::sqrt(3), 0.01);
  EXPECT_NEAR(deviation(fan_in_uniform()), 1 / std::sqrt(3 * 288.0), 0.001);
  EXPECT_NEAR(deviation(he_normal_fan_out()), std::sqrt(2 / 576.0), 0.001);
  EXPECT_NEAR(deviation(glorot_uniform()), std::sqrt(2 / (288.0 + 576.0)), 0.001);
  EXPECT_LT(deviation(truncated_normal(1)), 0.9);
}

TEST(Initialisers, AreAFunctionOfSeedAndName) {
  const auto first = [](uint64_t seed, const std::string& name) {
    return initial_value(seed, name, {4}, normal(1)).values<float>()[0];
  };
  EXPECT_EQ(first(1, "a"), first(1, "a"));
  EXPECT_NE(first(1, "a"), first(2, "a"));
  EXPECT_NE(first(1, "a"), first(1, "b"));
}

}  // namespace
}  // namespace artel::nn
