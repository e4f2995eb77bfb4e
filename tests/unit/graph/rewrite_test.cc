// What passes are built from: copying a graph with changes, and values that are whole or sharded.
#include "artel/graph/passes/rewrite.h"

#include <gtest/gtest.h>

#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/split_values.h"

namespace artel {
namespace {

TEST(CountUses, CountsReadersOfEveryKind) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 4}});
  const Value weight = graph.parameter("weight", {3, 4});
  const Value mean = graph.state("mean", {2, 3});
  const Value y = dense(x, weight);
  const Value sum = add(y, y);
  const Value unused = relu(sum);
  graph.set_output("y", y);
  graph.update_state(mean, sum, 0.1);
  graph.set_gradient(weight, graph.parameter("gradient", {3, 4}));
  const std::vector<int> uses = count_uses(graph);
  EXPECT_EQ(uses[x.id()], 1);
  EXPECT_EQ(uses[y.id()], 3);  // twice by the sum, once as an output
  EXPECT_EQ(uses[sum.id()], 2);
  EXPECT_EQ(uses[unused.id()], 0);
  EXPECT_EQ(uses[graph.gradients().front().gradient], 1);
}

TEST(Rewriter, KeepsWhatItDoesNotChange) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 4}});
  const Value weight = graph.parameter("weight", {4, 4});
  const Value mean = graph.state("mean", {2, 4});
  const Value y = relu(dense(x, weight));
  graph.set_output("y", y);
  graph.update_state(mean, y, 0.1);
  graph.set_gradient(weight, weight);

  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes())
    if (node.op->name == "relu")
      rewriter.replace(node.outputs[0], unary("tanh", rewriter.now(node.inputs[0])));
    else
      rewriter.copy(node);
  const Graph changed = rewriter.finish();

  ASSERT_EQ(changed.nodes().size(), 2u);
  EXPECT_EQ(changed.node(0).op->name, "dense");
  EXPECT_EQ(changed.node(1).op->name, "tanh");
  EXPECT_EQ(changed.output_id("y"), changed.node(1).outputs[0]);
  ASSERT_EQ(changed.state_updates().size(), 1u);
  EXPECT_EQ(changed.state_updates()[0].observed, changed.output_id("y"));
  EXPECT_EQ(changed.value(changed.state_updates()[0].state).name, "mean");
  ASSERT_EQ(changed.gradients().size(), 1u);
  EXPECT_EQ(changed.value(changed.gradients()[0].parameter).name, "weight");
}

// Shards of rows that begin on cache lines, and of rows that do not.
TEST(SplitValues, CutsOnlyLeavesWhoseShardsBeginOnCacheLines) {
  Graph graph;
  const Value even = graph.parameter("even", {4, 16});
  const Value odd = graph.parameter("odd", {4, 6});
  SplitValues values(graph, ShardPart::all(4));
  const Split rows = values.split(0);
  EXPECT_TRUE(values.can_be_cut(even.id(), rows));
  EXPECT_FALSE(values.can_be_cut(odd.id(), rows));
  EXPECT_EQ(values.pieces(even.id(), rows).size(), 4u);
  EXPECT_EQ(values.pieces(odd.id(), rows).size(), 4u);
  const Graph split = values.finish();
  int shards = 0;
  for (const ValueId id : split.of_kind(ValueKind::parameter)) {
    const ValueData& value = split.value(id);
    if (!value.shard_of) continue;
    EXPECT_EQ(value.shard_of->name, "even");
    EXPECT_EQ(value.type.shape, (Shape{1, 16}));
    ++shards;
  }
  EXPECT_EQ(shards, 4);  // the odd one is sliced
}

TEST(SplitValues, AWorkerHasItsShardsAndOneCopyForEach) {
  Graph graph;
  const Value weight = graph.parameter("weight", {4, 16});
  const Value x = graph.input("x", {DType::f32, {2, 2}});
  SplitValues values(graph, {.shards = 4, .first = 1, .last = 3});
  const std::vector<Value> pieces = values.pieces(weight.id(), values.split(0));
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(values.target().value(pieces[0].id()).shard_of->shard, 1);
  EXPECT_EQ(values.target().value(pieces[1].id()).shard_of->shard, 2);
  EXPECT_TRUE(values.is_split(weight.id()));
  EXPECT_FALSE(values.is_split(x.id()));
  // An input needs no gradient, so it is not copied.
  EXPECT_EQ(values.copies(x.id()).size(), 2u);
  EXPECT_EQ(values.copies(x.id())[0].id(), values.whole(x.id()).id());
  EXPECT_EQ(values.whole(weight.id()).shape(), (Shape{4, 16}));
  EXPECT_EQ(values.target().nodes().size(), 1u);  // the one that gathers the weight
}

}  // namespace
}  // namespace artel
