#include "artel/plan/graph_costs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"
#include "artel/plan/measure.h"
#include "artel/plan/pipeline.h"

namespace artel::plan {
namespace {

// x -> tanh(x w0) -> tanh(. w1) + skip -> mean: the first activation is used twice.
Graph small_network() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 8}});
  const Value first = unary("tanh", matmul(x, graph.parameter("w0", {8, 16})));
  const Value second = unary("tanh", matmul(first, graph.parameter("w1", {16, 16})));
  graph.set_output("loss", mean(add(second, first)));
  return lower(graph, Differentiation{});
}

std::vector<double> ones(const Graph& graph) {
  return std::vector<double>(graph.nodes().size(), 1.0);
}

TEST(GraphCosts, StagesShareOutAllNodes) {
  const Graph graph = small_network();
  const GraphCosts costs(graph, ones(graph));
  const int nodes = costs.nodes();
  ASSERT_EQ(nodes, graph.forward_end());
  EXPECT_DOUBLE_EQ(costs.times(0, nodes).total(), static_cast<double>(graph.nodes().size()));
  EXPECT_DOUBLE_EQ(costs.times(0, nodes).forward, nodes);
  for (int cut = 1; cut < nodes; ++cut)
    EXPECT_DOUBLE_EQ(costs.times(0, cut).total() + costs.times(cut, nodes).total(),
                     costs.times(0, nodes).total());
}

TEST(GraphCosts, CountsWhatCrossesACut) {
  const Graph graph = small_network();
  const GraphCosts costs(graph, ones(graph));
  ASSERT_EQ(graph.node(1).op->name, "tanh");
  const double activation = 4 * 16 * sizeof(float);
  // Before the second product: the first activation, used behind the cut by the product and by the
  // sum, goes over it once, and so does its gradient.
  EXPECT_DOUBLE_EQ(costs.crossing(2).values, activation);
  EXPECT_DOUBLE_EQ(costs.crossing(2).gradients, activation);
  // Behind the product, also the skip.
  EXPECT_DOUBLE_EQ(costs.crossing(3).values, 2 * activation);
  EXPECT_DOUBLE_EQ(costs.crossing(0).values, 0);
}

TEST(GraphCosts, ATableIsFinishedWhereItIsTheLastLayer) {
  Graph built;
  const Value table = built.parameter("table", {50, 8});
  const Value h = unary("tanh", embedding(built.input("x", {DType::i32, {4, 3}}), table));
  built.set_output("loss", mean(dense(h, table)));
  const Graph graph = lower(built, Differentiation{});
  const GraphCosts costs(graph, ones(graph));
  const double bytes = 50 * 8 * sizeof(float);
  EXPECT_DOUBLE_EQ(costs.memory(0, 1).parameters, bytes);
  EXPECT_DOUBLE_EQ(costs.memory(0, 1).trained, 0);
  EXPECT_DOUBLE_EQ(costs.memory(1, costs.nodes()).parameters, bytes);
  EXPECT_DOUBLE_EQ(costs.memory(1, costs.nodes()).trained, bytes);
  EXPECT_DOUBLE_EQ(costs.memory(0, costs.nodes()).trained, bytes);
  EXPECT_DOUBLE_EQ(costs.memory(1, costs.nodes()).total(0, 2, 3), bytes * 6);
}

TEST(GraphCosts, CountsMemoryOfAStageOnce) {
  const Graph graph = small_network();
  const GraphCosts costs(graph, ones(graph));
  const double w0 = 8 * 16 * sizeof(float), w1 = 16 * 16 * sizeof(float);
  EXPECT_DOUBLE_EQ(costs.memory(0, 2).parameters, w0);
  EXPECT_DOUBLE_EQ(costs.memory(2, costs.nodes()).parameters, w1);
  EXPECT_DOUBLE_EQ(costs.memory(0, costs.nodes()).parameters, w0 + w1);
  const StageMemory memory = {.parameters = 10, .trained = 8, .activations = 5};
  EXPECT_DOUBLE_EQ(memory.total(3, 2), 10 + 8 * 3 + 15);
}

TEST(GraphCosts, MeasuredTimesAreKept) {
  const auto folder = std::filesystem::temp_directory_path() / "artel_plan_costs_test";
  std::filesystem::remove_all(folder);
  const Graph graph = small_network();
  const std::vector<double> seconds = measured_node_seconds(graph, {}, folder);
  ASSERT_EQ(seconds.size(), graph.nodes().size());
  EXPECT_GT(std::accumulate(seconds.begin(), seconds.end(), 0.0), 0);
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const std::filesystem::path file = std::filesystem::directory_iterator(folder)->path();
  std::string known;
  for (size_t i = 0; i < seconds.size(); ++i) known += std::to_string(i) + "\n";
  write_file_atomically(file, known);
  EXPECT_EQ(measured_node_seconds(graph, {}, folder).back(), seconds.size() - 1.0);
  // A damaged file is measured again.
  write_file_atomically(file, "1\nx\n");
  EXPECT_LT(measured_node_seconds(graph, {}, folder).back(), 1);
  std::filesystem::remove_all(folder);
}

TEST(Pipeline, TakesCutsThatFitOrSaysWhatWould) {
  const Graph graph = small_network();
  const GraphCosts costs(graph, estimated_node_seconds(graph));
  PipelineRequest request = {.shape = {2, 2, 4}, .slots = 2};
  const PipelinePlan plan = plan_pipeline(costs, request);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].last, plan.stages[1].first);
  EXPECT_EQ(plan.stages[1].last, costs.nodes());
  EXPECT_GT(plan.stages[0].crossing.values, 0);
  request.memory = 1000;
  std::string message;
  try {
    plan_pipeline(costs, request);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_EQ(message.find("[pipeline] memory: got 1000 B for each of 2 workers, expected at least"),
            0u)
      << message;
  request.shape = {20, 20, 20};
  EXPECT_THROW(plan_pipeline(costs, request), Error);
}

}  // namespace
}  // namespace artel::plan
