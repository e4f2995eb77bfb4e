#include "artel/graph/graph.h"

#include <gtest/gtest.h>

#include "artel/graph/differentiate.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/fuse_forward.h"
#include "artel/graph/passes/lower.h"
#include "tests/support/error_of.h"

namespace artel {
namespace {

TEST(Graph, RejectsAWrongModelByName) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {8, 3, 32, 32}});
  const Graph::Scope scope(graph, "features.0");
  const Value w = graph.parameter("weight", {16, 4, 3, 3});
  EXPECT_EQ(
      artel::error_of([&] { conv2d(x, w); }),
      "[layer 'features.0'] conv2d: got 3 input channels, expected 4 (4 in each of 1 groups)");
  EXPECT_EQ(
      artel::error_of([&] {
        dense(x, graph.parameter("w2", {10, 100}));
      }),
      "[layer 'features.0'] dense: got input [8, 3, 32, 32] and weights [10, 100], expected the "
      "last extent of the input to be 100");
}

TEST(Graph, RejectsUnknownOpsAndDoubleNames) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2}});
  EXPECT_EQ(artel::error_of([&] { graph.add("rellu", {x}); }),
            "unknown op 'rellu'; did you mean 'relu'?");
  graph.parameter("w", {1});
  EXPECT_EQ(artel::error_of([&] { graph.parameter("w", {1}); }),
            "[w] two parameters have this name; give the layers different names");
}

TEST(Graph, InfersShapes) {
  Graph graph;
  const auto input = [&](Shape shape) { return graph.input("x", {DType::f32, std::move(shape)}); };
  EXPECT_EQ(conv2d(input({2, 3, 9, 7}), input({5, 3, 3, 3}), {},
                   {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}})
                .shape(),
            (Shape{2, 5, 5, 3}));
  EXPECT_EQ(conv_transpose2d(input({2, 5, 4, 4}), input({5, 3, 3, 3}), {},
                             {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}})
                .shape(),
            (Shape{2, 3, 8, 8}));
  EXPECT_EQ(matmul(input({4, 2, 3}), input({4, 5, 3}), {.transpose_b = true}).shape(),
            (Shape{4, 2, 5}));
  EXPECT_EQ(concat({input({2, 3}), input({2, 4})}, -1).shape(), (Shape{2, 7}));
  EXPECT_EQ(mean(input({2, 3, 4}), {1}).shape(), (Shape{2, 4}));
  EXPECT_EQ(reshape(input({2, 3, 4}), {-1, 6}).shape(), (Shape{4, 6}));
  EXPECT_THROW(reshape(input({2, 3}), {4, -1}), Error);
  EXPECT_THROW(max_pool(input({1, 1, 2, 2}), {.kernel = {3, 3}}), Error);
  EXPECT_THROW(slice(input({2, 3}), 1, 2, 4), Error);
}

TEST(Differentiate, FrozenLayersCostNothing) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 8}});
  const Value frozen = graph.parameter("frozen", {8, 8}), head = graph.parameter("head", {1, 8});
  const Value loss = mean(dense(relu(dense(x, frozen)), head));
  const size_t forward = graph.nodes().size();
  const std::vector<Value> gradients = differentiate(loss, {head});
  EXPECT_EQ(gradients[0].shape(), (Shape{1, 8}));
  int products = 0;
  for (size_t i = forward; i < graph.nodes().size(); ++i)
    products += graph.nodes()[i].op->name == "matmul";
  EXPECT_EQ(products, 1);
}

std::vector<std::string> directions_of(const Graph& graph) {
  std::vector<std::string> result;
  for (const Node& node : graph.nodes())
    result.push_back(fmt::format("{}: {}", node.op->name, to_string(node.direction)));
  return result;
}

// Nothing further back waits for the gradients of weights, nor for the ReLU behind the first layer.
TEST(Differentiate, SaysWhatEachNodeIsFor) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 8}});
  const Value w = graph.parameter("w", {8, 8}), v = graph.parameter("v", {1, 8});
  graph.set_output("loss", sum(dense(relu(dense(x, w)), v)));
  const std::vector<std::string> expected = {
      "dense: forward",          "dense: forward",
      "reduce_sum: forward",     "reshape: backward",
      "broadcast_to: backward",  "matmul: backward",
      "matmul: weight gradient", "bias_backward: weight gradient",
      "matmul: weight gradient"};
  EXPECT_EQ(directions_of(lower(graph, Differentiation{})), expected);
}

// Tied weights: their gradients are added, and what is made of weights alone is a weight.
TEST(Differentiate, TakesWhatIsMadeOfWeightsForAWeight) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 8}});
  const Value w = graph.parameter("w", {8, 8});
  const Value turned = transpose(w, {1, 0});
  const Value hidden = matmul(x, w);
  differentiate(sum(matmul(hidden, turned)), {w});
  const std::vector<std::string> expected = {
      "transpose: forward",         "matmul: forward",         "matmul: forward",
      "reduce_sum: forward",        "reshape: backward",       "broadcast_to: backward",
      "matmul: backward",           "matmul: weight gradient", "matmul: weight gradient",
      "transpose: weight gradient", "add: weight gradient"};
  EXPECT_EQ(directions_of(graph), expected);
  EXPECT_EQ(graph.forward_end(), 4);
}

TEST(Differentiate, SaysWhatHasNoGradient) {
  Graph graph;
  const Value w = graph.parameter("w", {3});
  EXPECT_EQ(artel::error_of([&] { differentiate(sum(greater(w, w)), {w}); }),
            "[layer ''] greater has no gradient rule");
  EXPECT_EQ(artel::error_of([&] { differentiate(w, {w}); }),
            "the loss has shape [3], expected a scalar; reduce it with mean or sum");
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.push_back(node.op->name);
  return names;
}

TEST(FuseForward, MergesTheEndOfAResidualBlock) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 4, 5, 5}});
  const Value scale = graph.parameter("scale", {4}), shift = graph.parameter("shift", {4});
  const Value mean = graph.state("mean", {4}), variance = graph.state("variance", {4});
  const Value y = batch_norm(x, scale, shift, mean, variance);
  graph.set_output("y", relu(add(y, x)));
  const Graph fused = fuse_forward(graph);
  EXPECT_EQ(ops_of(fused), (std::vector<std::string>{"batch_norm"}));
  EXPECT_EQ(fused.node(0).inputs.size(), 4u);
  EXPECT_EQ(fused.state_updates().size(), 2u);
}

TEST(FuseForward, GivesTheSlopeOfAGeluOnlyToTraining) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3}});
  graph.set_output("y", unary("gelu", dense(x, graph.parameter("w", {4, 3}))));
  for (const bool differentiable : {false, true}) {
    const Graph fused = fuse_forward(graph, differentiable);
    EXPECT_EQ(ops_of(fused), (std::vector<std::string>{"dense"}));
    EXPECT_EQ(fused.node(0).outputs.size(), differentiable ? 2u : 1u);
  }
}

TEST(FuseForward, LeavesValuesThatOthersUse) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3}});
  const Value y = dense(x, graph.parameter("w", {4, 3}));
  graph.set_output("y", relu(y));
  graph.set_output("before", y);
  EXPECT_EQ(ops_of(fuse_forward(graph)), (std::vector<std::string>{"dense", "relu"}));
}

TEST(Prune, DropsWhatNothingNeeds) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3}});
  relu(x);
  graph.set_output("y", unary("tanh", x));
  EXPECT_EQ(ops_of(prune(graph)), (std::vector<std::string>{"tanh"}));
}

TEST(Graph, ConvertsIntegersThatAnOpComputesWith) {
  Graph graph;
  const Value numbers = graph.input("x", {DType::i32, {3, 4}});
  const Value table = graph.parameter("table", {5, 2}), weight = graph.parameter("w", {6, 4});
  EXPECT_EQ(dense(numbers, weight).type(), (TensorType{DType::f32, {3, 6}}));
  EXPECT_EQ(embedding(numbers, table).type(), (TensorType{DType::f32, {3, 4, 2}}));
  EXPECT_EQ(reshape(numbers, {4, 3}).type(), (TensorType{DType::i32, {4, 3}}));
  int conversions = 0;
  for (const Node& node : graph.nodes()) conversions += node.op->name == "to_f32" ? 1 : 0;
  EXPECT_EQ(conversions, 1);
  EXPECT_THROW(relu(graph.input("z", {DType::f64, {3}})), Error);
}

TEST(Losses, CosineTakesOneTargetForEachPair) {
  Graph graph;
  const Value a = graph.input("a", {DType::f32, {5, 3}}),
              b = graph.input("b", {DType::f32, {5, 3}});
  const Value row = graph.input("t", {DType::f32, {5}}),
              column = graph.input("u", {DType::f32, {5, 1}});
  EXPECT_EQ(cosine_embedding_loss(a, b, row).shape(), Shape{});
  EXPECT_THROW(cosine_embedding_loss(a, b, column), Error);
}

TEST(Losses, RefuseTargetsOfAnotherShape) {
  using Pair = Value (*)(Value, Value);
  for (const Pair loss : std::vector<Pair>{
           mean_squared_error, l1_loss, [](Value p, Value t) { return smooth_l1_loss(p, t); },
           binary_cross_entropy, [](Value p, Value t) { return kl_divergence(p, t); }}) {
    Graph graph;
    const Value column = graph.input("p", {DType::f32, {5, 1}});
    const Value rows = graph.input("q", {DType::f32, {5, 3}});
    const auto target = [&](Shape shape) {
      return graph.input("t" + std::to_string(graph.values().size()), {DType::f32, shape});
    };
    EXPECT_EQ(loss(column, target({5})).shape(), Shape{});
    EXPECT_EQ(loss(column, target({5, 1})).shape(), Shape{});
    EXPECT_EQ(loss(rows, target({5, 3})).shape(), Shape{});
    for (const Shape& other : {Shape{5}, Shape{5, 1}, Shape{3}, Shape{}, Shape{1, 5, 3}}) {
      try {
        loss(rows, target(other));
        ADD_FAILURE() << to_string(other);
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(to_string(other)), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("[5, 3]"), std::string::npos) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace artel
