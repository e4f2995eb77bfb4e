// Passes must not change the values of a graph, as computed by the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artel/base/random.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/fuse_forward.h"
#include "artel/graph/passes/quantise_weights.h"
#include "artel/graph/passes/split_layers.h"
#include "tests/reference/interpreter.h"
#include "tests/support/error_of.h"

namespace artel {
namespace {

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const Node& node : graph.nodes()) found += node.op->name == op;
  return found;
}

// Random numbers for all leaves, by name: those of a graph before a pass suit the graph after it.
reference::Leaves leaves_of(const Graph& graph) {
  reference::Leaves leaves;
  for (const ValueKind kind : {ValueKind::input, ValueKind::parameter, ValueKind::state})
    for (const ValueId id : graph.of_kind(kind)) {
      const ValueData& value = graph.value(id);
      reference::Array array = reference::zeros(value.type.shape);
      Random random(hash_name(value.name));
      for (double& element : array.data)
        element = value.type.dtype == DType::f32 ? random.normal() * 0.5
                                                 : std::floor(random.uniform(0, 8));
      if (value.name.find("variance") != std::string::npos)
        for (double& element : array.data) element = 0.5 + element * element;
      leaves.emplace(value.name, std::move(array));
    }
  return leaves;
}

// A shard of a parameter or a state.
reference::Array piece_of(const reference::Array& whole, const ShardOf& shard, const Shape& shape) {
  reference::Array piece = reference::zeros(shape);
  const auto axis = static_cast<size_t>(shard.split.axis);
  for (const SplitRange& range : ranges_of(whole.shape, shard.split)) {
    if (range.shard != shard.shard) continue;
    reference::for_each_index(shape, [&](const reference::Index& index) {
      if (index[axis] < range.own || index[axis] >= range.own + range.extent) return;
      reference::Index from = index;
      from[axis] += range.begin - range.own;
      piece.data[reference::offset(shape, index)] =
          whole.data[reference::offset(whole.shape, from)];
    });
  }
  return piece;
}

void expect_same_outputs(const Graph& before, const Graph& after) {
  reference::Leaves leaves = leaves_of(before);
  const std::vector<reference::Array> expected = reference::run(before, leaves);
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : after.of_kind(kind))
      if (const ValueData& value = after.value(id); value.shard_of)
        leaves[value.name] =
            piece_of(leaves.at(value.shard_of->name), *value.shard_of, value.type.shape);
  const std::vector<reference::Array> found = reference::run(after, leaves);
  for (const auto& [name, id] : before.outputs()) {
    const std::vector<double>& a = expected[id].data;
    const std::vector<double>& b = found[after.output_id(name)].data;
    ASSERT_EQ(a.size(), b.size()) << name;
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-10 * (1 + std::abs(a[i]))) << name << " at " << i;
  }
}

// Layers by their shapes, with parameters of their names.
Value fully_connected(Graph& graph, const std::string& name, Value x, int64_t units) {
  return dense(x, graph.parameter(name + ".weight", {units, x.shape().back()}),
               graph.parameter(name + ".bias", {units}));
}
Value convolved(Graph& graph, const std::string& name, Value x, int64_t channels) {
  return conv2d(x, graph.parameter(name + ".weight", {channels, x.shape()[1], 3, 3}),
                graph.parameter(name + ".bias", {channels}), {.padding = {1, 1}});
}
Value normalised(Graph& graph, const std::string& name, Value x) {
  const Shape channels = {x.shape()[1]};
  return batch_norm(
      x, graph.parameter(name + ".scale", channels), graph.parameter(name + ".shift", channels),
      graph.state(name + ".mean", channels), graph.state(name + ".variance", channels));
}

TEST(FuseForward, KeepsTheValuesOfEveryFusion) {
  Graph graph;
  const Value image = graph.input("image", {DType::f32, {2, 3, 5, 5}});
  const Value first = relu(convolved(graph, "conv", image, 4));
  const Value block = relu(normalised(graph, "norm", first));
  const Value residual = relu(add(normalised(graph, "second", block), block));
  const Value rows = reshape(residual, {2, 100});
  const Value hidden = relu(fully_connected(graph, "dense", rows, 8));
  const Value smooth = unary("gelu", fully_connected(graph, "gelu", hidden, 8));
  graph.set_output("y", unary("gelu_tanh", fully_connected(graph, "gelu_tanh", smooth, 8)));
  for (const bool differentiable : {false, true}) {
    const Graph fused = fuse_forward(graph, differentiable);
    for (const char* op : {"relu", "gelu", "gelu_tanh", "add"})
      EXPECT_EQ(count(fused, op), 0) << op;
    EXPECT_EQ(fused.state_updates().size(), graph.state_updates().size());
    expect_same_outputs(graph, fused);
  }
}

TEST(FuseForward, CapsConvolutionsOnlyForInference) {
  Graph graph;
  const Value image = graph.input("image", {DType::f32, {2, 3, 5, 5}});
  graph.set_output("y", clamp_max(relu(convolved(graph, "conv", image, 4)), 0.5));
  EXPECT_EQ(count(fuse_forward(graph, true), "clamp_max"), 1);
  const Graph fused = fuse_forward(graph, false);
  EXPECT_EQ(fused.nodes().size(), 1u);
  EXPECT_EQ(fused.node(0).attributes.number("most"), 0.5);
}

TEST(FuseForward, LeavesActivationsToOpsThatApplyThem) {
  register_op({.name = "applies_tanh",
               .infer = [](const InferContext& context) -> std::vector<TensorType> {
                 return {context.type(0)};
               },
               .applies = {"tanh"}});
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3}});
  graph.set_output("y", unary("tanh", graph.add_one("applies_tanh", {x})));
  graph.set_output("z", unary("silu", graph.add_one("applies_tanh", {x})));
  const Graph fused = fuse_forward(graph, false);
  EXPECT_EQ(count(fused, "tanh"), 0);
  EXPECT_EQ(count(fused, "silu"), 1);
  const Node& y = fused.node(fused.value(fused.output_id("y")).producer);
  ASSERT_NE(applied_activation(y), nullptr);
  EXPECT_EQ(*applied_activation(y), "tanh");
}

TEST(QuantiseWeights, ReplacesMatricesOfOpsThatReadThem) {
  Graph graph;
  const Value token = graph.input("token", {DType::i32, {2, 4}});
  const Value x = embedding(token, graph.parameter("table", {16, 32}));
  graph.set_output("y", relu(fully_connected(graph, "head", x, 8)));
  const auto codes = [](int64_t rows) {
    return QuantisedType{{DType::i8, {rows, 32}}, {DType::f16, {rows, 1}}};
  };
  const Graph small = quantise_weights(
      fuse_forward(graph, false), {{"table", codes(16)}, {"head.weight", codes(8)}, {"no", {}}});
  std::vector<std::string> names;
  for (const ValueId id : small.of_kind(ValueKind::parameter))
    names.push_back(small.value(id).name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"head.bias", "head.weight.codes", "head.weight.scales",
                                             "table.codes", "table.scales"}));
  EXPECT_EQ(count(small, "quantised_dense"), 1);
  EXPECT_EQ(count(small, "quantised_embedding"), 1);
  EXPECT_EQ(count(small, "relu"), 1);  // the fused one is a node of its own again
  EXPECT_EQ(small.type(small.output_id("y")), graph.type(graph.output_id("y")));
}

TEST(QuantiseWeights, RefusesOtherReadersAndOtherShapes) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 32}});
  const Value weight = graph.parameter("head.weight", {8, 32});
  graph.set_output("y", dense(x, weight));
  const QuantisedType other = {{DType::i8, {4, 32}}, {DType::f16, {4, 1}}};
  EXPECT_NE(error_of([&] {
              quantise_weights(graph, {{"head.weight", other}});
            }).find("the quantised weight 'head.weight' does not fit the model"),
            std::string::npos);
  graph.set_output("z", relu(weight));
  const QuantisedType fits = {{DType::i8, {8, 32}}, {DType::f16, {8, 1}}};
  EXPECT_NE(error_of([&] {
              quantise_weights(graph, {{"head.weight", fits}});
            }).find("is quantised, but relu of layer '' reads it as numbers; keep it float"),
            std::string::npos);
}

// A network with each kind of layer that is cut, and one of each that follows.
Graph network() {
  Graph graph;
  const Value image = graph.input("image", {DType::f32, {2, 3, 6, 6}});
  Value x = relu(normalised(graph, "norm", convolved(graph, "wide", image, 32)));
  x = max_pool(x, {});
  x = convolved(graph, "narrow", x, 4);
  x = reshape(x, {2, 36});
  x = unary("tanh", fully_connected(graph, "first", x, 64));
  x = fully_connected(graph, "second", mul_scalar(x, 2), 8);
  graph.set_output("y", x);
  return graph;
}

TEST(SplitLayers, KeepsTheValues) {
  const Graph graph = network();
  for (const int shards : {2, 3, 4}) {
    const Graph split = split_layers(graph, ShardPart::all(shards));
    if (shards == 2) {
      EXPECT_EQ(count(split, "conv2d"), 4);
      EXPECT_EQ(count(split, "dense"), 4);
      EXPECT_EQ(count(split, "shard_sum"), 0) << "all shards are here: plain additions";
      EXPECT_EQ(count(split, "tanh"), 2) << "element-wise ops follow their input";
      EXPECT_TRUE(whole_layers(split).empty());
    }
    expect_same_outputs(graph, split);
  }
}

TEST(SplitLayers, CutsAttentionByHeadsAndTablesByRows) {
  Graph graph;
  const Value tokens = graph.input("tokens", {DType::i32, {2, 5}});
  Value x = embedding(tokens, graph.parameter("table", {256, 32}));
  x = attention(fully_connected(graph, "queries", x, 96), {.heads = 4, .causal = true});
  graph.set_output("y", fully_connected(graph, "out", x, 32));
  const Graph split = split_layers(graph, ShardPart::all(2));
  EXPECT_EQ(count(split, "attention"), 2);
  EXPECT_EQ(count(split, "embedding"), 2);
  EXPECT_EQ(count(split, "shard_sum"), 0);
  expect_same_outputs(graph, split);
}

// A definition says by a flag that an op is element-wise; no pass has to know its name.
TEST(SplitLayers, CutsElementwiseOpsOfAProgram) {
  register_op({.name = "own_identity",
               .infer = [](const InferContext& context) -> std::vector<TensorType> {
                 return {context.type(0)};
               },
               .elementwise = true});
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 8}});
  const Value hidden = unary("own_identity", fully_connected(graph, "first", x, 64));
  graph.set_output("y", fully_connected(graph, "second", hidden, 8));
  const Graph split = split_layers(graph, ShardPart::all(2));
  EXPECT_EQ(count(split, "own_identity"), 2);
  EXPECT_EQ(count(split, "shard_gather"), 0);
}

TEST(SplitLayers, GivesAWorkerItsShards) {
  const Graph graph = network();
  const Graph part = split_layers(graph, {.shards = 4, .first = 1, .last = 3});
  EXPECT_EQ(count(part, "tanh"), 2);
  for (const ValueId id : part.of_kind(ValueKind::parameter)) {
    const auto& shard = part.value(id).shard_of;
    EXPECT_TRUE(!shard || shard->shard == 1 || shard->shard == 2) << part.value(id).name;
  }
}

}  // namespace
}  // namespace artel
