#include "artel/graph/passes/recompute.h"

#include <gtest/gtest.h>

#include "artel/graph/differentiate.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"

namespace artel {
namespace {

TEST(RecomputeNorms, KeepsNoNormalisedValueForTheBackwardPass) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {6, 4}});
  const Value scale = graph.parameter("scale", {4}), shift = graph.parameter("shift", {4});
  const Value w = graph.parameter("w", {3, 4});
  const Value loss = sum(dense(layer_norm(x, scale, shift), w));
  const std::vector<Value> gradients = differentiate(loss, {scale, shift, w});
  graph.set_output("loss", loss);
  graph.set_gradient(scale, gradients[0]);
  graph.set_gradient(shift, gradients[1]);
  graph.set_gradient(w, gradients[2]);

  const Graph result = recompute_norms(graph);
  std::vector<ValueId> normalised;
  std::vector<std::vector<std::string>> readers;
  for (const Node& node : result.nodes())
    if (node.op->name == "layer_norm") normalised.push_back(node.outputs[0]);
  for (const ValueId value : normalised) {
    std::vector<std::string>& names = readers.emplace_back();
    for (const Node& node : result.nodes())
      for (const ValueId input : node.inputs)
        if (input == value) names.push_back(node.op->name);
  }
  EXPECT_EQ(readers, (std::vector<std::vector<std::string>>{{"dense"}, {"matmul"}}));
  // The second computation belongs to the backward pass.
  EXPECT_EQ(result.forward_end(), graph.forward_end());
}

// The output of the batch norm takes 128 MiB.
TEST(RecomputeNorms, RecomputesBatchNormsIfTheLanesOfAStepExceedTheBound) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {32, 4, 512, 512}});
  const Value scale = graph.parameter("scale", {4}), shift = graph.parameter("shift", {4});
  const Value mean = graph.state("mean", {4}), variance = graph.state("variance", {4});
  const Value w = graph.parameter("w", {1, 4, 1, 1});
  const Value loss = sum(conv2d(batch_norm(x, scale, shift, mean, variance), w));
  const std::vector<Value> gradients = differentiate(loss, {scale, shift, w});
  graph.set_output("loss", loss);
  graph.set_gradient(scale, gradients[0]);
  graph.set_gradient(shift, gradients[1]);
  graph.set_gradient(w, gradients[2]);
  const auto norms = [&](int lanes) {
    int count = 0;
    const Graph result = recompute_norms(graph, {.lanes = lanes});
    for (const Node& node : result.nodes()) count += node.op->name == "batch_norm" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(norms(1), 1);
  EXPECT_EQ(norms(8), 2);
}

}  // namespace
}  // namespace artel
