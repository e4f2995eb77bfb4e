#include "artel/transfer/contrastive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/checkpoint/compare.h"
#include "artel/transfer/label_probe.h"
#include "tests/unit/transfer/trained_base.h"

namespace artel::transfer {
namespace {

Tensor random_rows(int64_t rows, int64_t width, uint64_t seed) {
  Tensor tensor({rows, width});
  Random random{seed};
  for (float& value : tensor.values<float>()) value = random.normal();
  return tensor;
}

// The gradient compared with differences of the loss.
void expect_gradient(const Tensor& outputs,
                     const std::function<ContrastiveLoss(const Tensor&)>& loss) {
  const Tensor gradient = loss(outputs).gradient;
  constexpr float kStep = 1e-2f;
  for (int64_t i = 0; i < outputs.elements(); ++i) {
    Tensor more = outputs.clone(), less = outputs.clone();
    more.values<float>()[i] += kStep;
    less.values<float>()[i] -= kStep;
    const double expected = (loss(more).loss - loss(less).loss) / (2 * kStep);
    EXPECT_NEAR(gradient.values<float>()[i], expected, 1e-4 + 1e-3 * std::abs(expected)) << i;
  }
}

TEST(Contrastive, LossesAreDifferentiatedRight) {
  expect_gradient(random_rows(8, 5, 1), [](const Tensor& rows) { return nt_xent(rows, 0.5); });
  const Tensor keys = unit_rows(random_rows(4, 5, 2)), queue = unit_rows(random_rows(7, 5, 3));
  expect_gradient(random_rows(4, 5, 4),
                  [&](const Tensor& rows) { return momentum_contrast(rows, keys, queue, 0.5); });
}

TEST(Contrastive, NtXentIsThatOfAnExampleByHand) {
  // Both views of two samples, at right angles: similarities 1, 0, 0 with temperature 1.
  const Tensor outputs = Tensor::from<float>({4, 2}, {1, 0, 0, 2, 3, 0, 0, 1});
  EXPECT_NEAR(nt_xent(outputs, 1).loss, std::log(std::exp(1.0) + 2) - 1, 1e-9);
  // Without negatives there is nothing to learn.
  const Tensor keys = unit_rows(outputs);
  EXPECT_NEAR(momentum_contrast(outputs, keys, Tensor({0, 2}), 1).loss, 0, 1e-12);
}

RunConfig views_of_spots() {
  know_spots();
  RunConfig config;
  config.data.set = "light_spots";
  config.data.augment = {"crop 12 1", "jitter 0.2 0.2"};
  config.model.layers = {"conv 8 3x3", "relu", "flatten", "dense 16", "relu", "dense 8"};
  config.train.batch_size = 64;
  config.train.epochs = 4;
  config.train.optimizer = {{"name", "adam"}, {"lr", "0.003"}};
  config.cluster.lanes = 2;
  return config;
}

TEST(Contrastive, PretrainingLowersTheLossAndLeavesABase) {
  const TrainedBase folder("pretrain");
  for (const char* method : {"simclr", "moco"}) {
    Cluster alone;
    std::vector<double> losses;
    const PretrainOptions options = {
        .method = method, .queue = 128, .quiet = true, .after_step = [&](int64_t, double loss) {
          losses.push_back(loss);
        }};
    pretrain(views_of_spots(), alone, options, folder.at(method));
    ASSERT_EQ(losses.size(), 16u);
    if (std::string(method) == "simclr") {
      EXPECT_LT(losses.back(), losses.front());
    }
    const BaseNetwork base = open_base({.name = folder.at(method)});
    const std::vector<LabelProbe> probes =
        probe_labels(base, data_for(base, "light_spots"),
                     {.shares = {0.1, 1}, .scratch_epochs = 1, .threads = 2});
    ASSERT_EQ(probes.size(), 2u);
    EXPECT_EQ(probes[1].labels, 256);
    EXPECT_NEAR(static_cast<double>(probes[0].labels), 26, 1);
    EXPECT_GT(probes[1].accuracy, 0.6) << method;
    EXPECT_TRUE(probes[0].scratch.has_value());
  }
}

// Once the rate is 0, further steps change nothing.
TEST(Contrastive, PretrainingFollowsTheSchedule) {
  const TrainedBase folder("pretrain_schedule");
  const auto weights_after = [&](const std::string& name, int64_t steps,
                                 const optim::Options& schedule) {
    Cluster alone;
    RunConfig config = views_of_spots();
    config.train.steps = steps;
    config.train.schedule = schedule;
    pretrain(config, alone, {.quiet = true}, folder.at(name));
    return checkpoint::checkpoint_at(folder.at(name)).weights;
  };
  const NamedTensors five = weights_after("five", 5, {{"name", "constant"}});
  const NamedTensors stopped = weights_after(
      "stopped", 9,
      {{"name", "multi_step"}, {"milestones", "5"}, {"factor", "0"}, {"unit", "step"}});
  EXPECT_FALSE(checkpoint::compare(five, stopped).has_value());
  const NamedTensors cosine = weights_after("cosine", 5, {{"name", "cosine"}});
  EXPECT_TRUE(checkpoint::compare(five, cosine).has_value());
  EXPECT_NO_THROW(weights_after("plateau", 5, {{"name", "plateau"}}));
}

TEST(Contrastive, RefusesNetworksThatDifferInTrainingAndViewsThatDoNot) {
  Cluster alone;
  RunConfig config = views_of_spots();
  config.model.layers.insert(config.model.layers.begin() + 1, "batch_norm");
  EXPECT_THROW(pretrain(config, alone, {.quiet = true}, "unused"), Error);
  config = views_of_spots();
  config.data.augment.clear();
  EXPECT_THROW(pretrain(config, alone, {.quiet = true}, "unused"), Error);
  config = views_of_spots();
  EXPECT_THROW(pretrain(config, alone, {.method = "byol", .quiet = true}, "unused"), Error);
}

}  // namespace
}  // namespace artel::transfer
