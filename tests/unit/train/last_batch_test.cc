// The samples of an epoch that do not fill a batch, where they are kept.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/data/sampler.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// 40 samples in batches of 13 leave one, of 11 leave 7: for 8 lanes, most or one of them empty.
Setting keeping(int64_t batch) {
  return {.lanes = 8, .batch = batch, .fit = {.keep_last_batch = true, .epochs = 3}};
}

TEST(LastBatch, SameBitsOnAnyNumberOfWorkers) {
  for (const int64_t batch : {13, 11}) {
    const std::vector<float> expected = alone(keeping(batch));
    EXPECT_FALSE(same_bits(expected, alone({.batch = batch})));
    for (const int workers : {2, 3, 8})
      on_workers(workers, [&](int rank, Cluster& cluster) {
        EXPECT_TRUE(same_bits(expected, flat(train(cluster, keeping(batch)))))
            << "worker " << rank << " of " << workers << ", batches of " << batch;
      });
    for (const auto& count : {std::pair{1, 1}, {3, 2}})
      on_workers_and_servers(count.first, count.second, [&](int rank, Cluster& cluster) {
        Setting setting = keeping(batch);
        setting.strategy = "ps";
        const std::vector<float> weights = flat(train(cluster, setting));
        if (rank > 0) return;
        EXPECT_TRUE(same_bits(expected, weights)) << count.first << " and " << count.second;
      });
  }
}

// A line through points: after each batch, w -= rate * mean of the gradient over its samples.
TEST(LastBatch, GradientIsTheMeanOverItsSamples) {
  const int64_t samples = 10, batch = 4;
  Tensor x({samples, 1}), y({samples, 1});
  Random random{3};
  for (int64_t i = 0; i < samples; ++i) {
    x.values<float>()[i] = random.normal();
    y.values<float>()[i] = 3 * x.values<float>()[i] + 1 + 0.1f * random.normal();
  }
  for (const int lanes : {1, 3, 4}) {
    Cluster cluster;
    Trainer trainer(cluster, nn::sequential({nn::dense(1)}),
                    {.optimizer = optim::sgd(0.1), .loss = "mse", .seed = 6, .lanes = lanes});
    trainer.build({DType::f32, {1}});
    const std::vector<float> start = flat(trainer.weights());
    std::vector<double> p(start.begin(), start.end());  // weight and bias, in the order of names
    const bool bias_first = trainer.weights()[0].name.ends_with("bias");
    double& weight = p[bias_first ? 1 : 0];
    double& bias = p[bias_first ? 0 : 1];
    const data::Sampler sampler(
        samples, {.batch_size = batch, .seed = 6, .last_batch = data::LastBatch::keep});
    for (int64_t epoch = 0; epoch < 2; ++epoch)
      for (int64_t begin = 0; begin < samples; begin += batch) {
        const auto rows = sampler.samples(epoch, begin, std::min(begin + batch, samples));
        double of_weight = 0, of_bias = 0;
        for (const int64_t row : rows) {
          const double error = weight * x.values<float>()[row] + bias - y.values<float>()[row];
          of_weight += 2 * error * x.values<float>()[row] / static_cast<double>(rows.size());
          of_bias += 2 * error / static_cast<double>(rows.size());
        }
        weight -= 0.1 * of_weight;
        bias -= 0.1 * of_bias;
      }
    const FitResult result =
        trainer.fit(x, y, {.batch_size = batch, .keep_last_batch = true, .epochs = 2});
    EXPECT_EQ(result.last.step, 6);
    EXPECT_EQ(result.last.samples, 2 * samples);
    const std::vector<float> weights = flat(trainer.weights());
    for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(weights[i], p[i], 1e-5) << lanes << " lanes";
  }
}

// 13 samples leave one of an epoch, which batch norm of one value a channel cannot train on.
TEST(LastBatch, WhatDoesNotFitItIsSaidBeforeTheFirstStep) {
  Cluster cluster;
  Trainer trainer(cluster, nn::sequential({nn::flatten(), nn::batch_norm(), nn::dense(3)}),
                  {.threads = 1, .lanes = 1});
  int64_t steps = 0;
  FitOptions fit = {.batch_size = 13, .keep_last_batch = true, .epochs = 2};
  fit.after_step.push_back([&](const TrainingState&) { return ++steps > 0; });
  EXPECT_THROW(trainer.fit(samples(), fit), Error);
  EXPECT_EQ(steps, 0);
}

// Three samples in eight lanes: running means follow those three, not the empty lanes, whether the
// update is one for all workers or each worker's own.
TEST(LastBatch, EmptyLanesObserveNothing) {
  Tensor x({3, 2, 2, 2}), y = Tensor::from<int32_t>({3}, {0, 1, 2});
  for (int64_t i = 0; i < x.elements(); ++i) x.values<float>()[i] = static_cast<float>(i);
  // The channels' means over all samples: channel 0 has 0..3, 8..11 and 16..19.
  const double momentum = 0.1, expected[] = {momentum * 9.5, momentum * 13.5};
  const Model model = nn::sequential({nn::batch_norm(), nn::flatten(), nn::dense(3)});
  const auto check = [&](Cluster& cluster, const TrainerOptions& options) {
    Trainer trainer(cluster, model, options);
    trainer.fit(x, y, {.batch_size = 8, .keep_last_batch = true, .epochs = 1});
    if (cluster.rank() > 0) return;
    for (const NamedTensor& tensor : trainer.weights()) {
      if (!tensor.name.ends_with("running_mean")) continue;
      for (int64_t c = 0; c < 2; ++c)
        EXPECT_NEAR(tensor.tensor.values<float>()[c], expected[c], 1e-5);
    }
    for (const float value : flat(trainer.weights())) EXPECT_TRUE(std::isfinite(value));
  };
  TrainerOptions options = {.threads = 1, .lanes = 8};
  Cluster alone;
  check(alone, options);
  // Eight lanes in two halves: the second half has two of the three samples.
  on_workers(2, [&](int, Cluster& cluster) { check(cluster, options); });
  options.strategy = "ps";
  on_workers_and_servers(2, 1, [&](int, Cluster& cluster) { check(cluster, options); });
}

// Workers that have nothing of a short batch make no update of their own, and harm nobody's.
TEST(LastBatch, WorkersWithoutSamplesHarmNobody) {
  for (const bool local : {true, false}) {
    Setting setting = keeping(13);
    setting.strategy = local ? "auto" : "downpour";
    setting.local_steps = local ? 2 : 1;
    setting.fit.epochs = 10;
    setting.fit.validation = samples();
    on_workers_and_servers(4, local ? 0 : 1, [&](int rank, Cluster& cluster) {
      TrainerOptions options = trainer_options(setting);
      if (!local)
        options.optimizer = optim::sgd(0.05);  // pushes are as stale as the load makes them
      Trainer trainer(cluster, network(), options);
      FitOptions fit = setting.fit;
      fit.batch_size = setting.batch;
      const FitResult result = trainer.fit(samples(), fit);
      EXPECT_TRUE(std::isfinite(result.last.loss));
      for (const float value : flat(trainer.weights())) ASSERT_LT(std::fabs(value), 100);
      if (rank > 0) return;
      EXPECT_LT(result.last.test_loss, 1.3) << setting.strategy;
    });
  }
}

}  // namespace
}  // namespace artel
