#include "artel/nn/summary.h"

#include <gtest/gtest.h>

#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/registry.h"

namespace artel::nn {
namespace {

TEST(Summary, ListsLayersWithTheirCosts) {
  const Model model =
      parse_layers({"conv 4 3x3", "batch_norm", "relu", "flatten", "head: dense 5"});
  const Summary summary = summarise(model, {DType::f32, {2, 3, 8, 8}});
  ASSERT_EQ(summary.rows.size(), 5u);
  EXPECT_EQ(summary.rows[0].layer, "0");
  EXPECT_EQ(summary.rows[0].op, "conv2d");
  EXPECT_EQ(summary.rows[0].output, (Shape{2, 4, 6, 6}));
  EXPECT_EQ(summary.rows[0].parameters, 4 * 3 * 9 + 4);
  EXPECT_EQ(summary.rows[0].flops, 2.0 * (2 * 4 * 6 * 6) * (3 * 9));
  EXPECT_EQ(summary.rows[1].parameters, 8);
  EXPECT_EQ(summary.rows[4].layer, "head");
  EXPECT_EQ(summary.rows[4].parameters, 144 * 5 + 5);
  EXPECT_EQ(summary.parameters, 112 + 8 + 725);
  EXPECT_EQ(summary.states, 8);
  double flops = 0;
  for (const SummaryRow& row : summary.rows) flops += row.flops;
  EXPECT_EQ(summary.flops, flops);
}

// The forward pass of ResNet-18 is known to take 1.82 billion multiply-adds at 224 x 224; a step
// does three times that, except for the gradient of its input.
TEST(Summary, CountsTheOperationsOfAStep) {
  const Model model = model_by_name("resnet18");
  const TensorType x = {DType::f32, {1, 3, 224, 224}};
  const double forward = summarise(model, x).flops;
  EXPECT_NEAR(forward / 2, 1.82e9, 0.02e9);
  const ModelGraph training =
      training_graph(model, x, {DType::i32, {1}}, loss_by_name("cross_entropy"));
  const double stem = 2.0 * (64 * 112 * 112) * (3 * 49);
  EXPECT_NEAR(graph_flops(training.graph), 3 * forward - stem, 0.02 * forward);
}

}  // namespace
}  // namespace artel::nn
