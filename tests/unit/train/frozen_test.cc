// Frozen parameters cost nothing: no backward pass below the lowest trained layer, no gradients, no
// optimizer memory, no traffic, no running statistics, nothing in checkpoints.
#include <gtest/gtest.h>

#include <algorithm>

#include "artel/graph/op.h"
#include "artel/nn/layers.h"
#include "artel/predict/batches.h"
#include "artel/train/step/stepper.h"
#include "artel/train/trainer.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

constexpr int64_t kHead = 3 * 8 + 3;  // floats of the last dense layer

Model body_and_head() {
  return nn::sequential(
      {nn::named("body", nn::sequential({nn::conv(4, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(),
                                         nn::relu(), nn::flatten(), nn::dense(8), nn::relu()})),
       nn::named("head", nn::dense(3))});
}

bool is_head(const std::string& name) { return name.starts_with("head"); }

ModelGraph graph_of(const std::function<bool(const std::string&)>& trained) {
  return training_graph(body_and_head(), {DType::f32, {4, 1, 6, 6}}, {DType::i32, {4}},
                        loss_by_name("cross_entropy"), trained);
}

TEST(Frozen, HaveNoBackwardPassAndNoStatistics) {
  const ModelGraph all = graph_of({}), head = graph_of(is_head);
  const auto count = [](const Graph& graph, const std::string& op) {
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [&](const Node& node) { return node.op->name == op; });
  };
  EXPECT_EQ(count(all.graph, "conv2d_backward_weights"), 1);
  EXPECT_EQ(count(head.graph, "conv2d_backward_weights"), 0);
  EXPECT_EQ(count(head.graph, "matmul"), 1);  // the gradient of the head's weight
  EXPECT_EQ(count(all.graph, "batch_norm"), 1);
  EXPECT_EQ(count(head.graph, "batch_norm"), 0);  // by its running statistics instead
  EXPECT_EQ(all.graph.state_updates().size(), 2u);
  EXPECT_EQ(head.graph.state_updates().size(), 0u);
  EXPECT_EQ(head.graph.gradients().size(), 2u);
}

TEST(Frozen, HaveNoMemoryAndNoTraffic) {
  KernelChoices choices;
  const TensorType x = {DType::f32, {1, 6, 6}}, y = {DType::i32, {}};
  ModelGraph graph = inference_graph(body_and_head(), batch_of(x, 1));
  Parameters parameters(Program(std::move(graph.graph), {}, choices).parameter_entries());
  Stepper stepper(body_and_head(), x, y, loss_by_name("cross_entropy"), optim::adam(0.1),
                  parameters, choices, {.lanes = 2, .trained = is_head});
  stepper.buckets(4);
  const auto padded = [](int64_t floats) { return (floats + 15) / 16 * 16; };
  const int64_t floats = padded(3 * 8) + padded(3);
  for (const std::span<float> block : stepper.update().memory())
    EXPECT_EQ(static_cast<int64_t>(block.size()), floats);
  EXPECT_EQ(stepper.update().memory().size(), 2u);  // Adam's two moments
  EXPECT_EQ(stepper.region().bytes(), stepper.region().statistics_bytes() + sizeof(float) * floats);
  int64_t saved = 0;
  for (const NamedTensor& tensor : stepper.update().state()) saved += tensor.tensor.elements();
  EXPECT_EQ(saved, 2 * kHead);
}

TEST(Frozen, StayAsTheyAre) {
  Cluster cluster;
  Trainer trainer(cluster, body_and_head(),
                  {.optimizer = optim::adamw(0.1), .seed = 1, .freeze = {"body"}});
  trainer.build({DType::f32, {1, 6, 6}});
  const NamedTensors before = trainer.weights();
  trainer.fit(samples(), {.batch_size = 8, .epochs = 2});
  const NamedTensors after = trainer.weights();
  for (size_t i = 0; i < before.size(); ++i) {
    const bool same =
        std::equal(before[i].tensor.values<float>().begin(), before[i].tensor.values<float>().end(),
                   after[i].tensor.values<float>().begin());
    EXPECT_EQ(same, !is_head(before[i].name)) << before[i].name;
  }
  for (const NamedTensor& tensor : trainer.checkpoint().optimizer)
    EXPECT_NE(tensor.name.find("/head"), std::string::npos) << tensor.name;
}

}  // namespace
}  // namespace artel
