// The noise of gradients compared with a plain computation, and the same on any number of workers.
#include "artel/train/loop/gradient_noise.h"

#include <gtest/gtest.h>

#include <map>

#include <cmath>

#include "artel/data/sampler.h"
#include "artel/train/strategies/sharded.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

// Lanes of different sizes.
constexpr int64_t kBatch = 13;
constexpr int kLanes = 5;

// One epoch of four batches.
TrainingTask noisy_task() {
  TrainingTask task = small_task(perceptron());
  task.options.lanes = kLanes;
  task.fit = {.batch_size = 9, .epochs = 0, .steps = 4, .noise_every = 2};
  return task;
}

struct Measured {
  std::vector<GradientNoise> noise;
  std::vector<double> scales;
  std::optional<double> epoch;
};

Measured measured(Cluster& cluster, TrainingTask task) {
  Measured all;
  Trainer trainer(cluster, task.model, task.options);
  task.fit.after_step = {[&](const TrainingState& state) {
    EXPECT_EQ(state.noise.has_value(), state.step % task.fit.noise_every == 0);
    if (state.noise) all.noise.push_back(*state.noise);
    if (state.noise_scale) all.scales.push_back(*state.noise_scale);
    return true;
  }};
  const FitResult result = trainer.fit(task.set, task.fit);
  if (!result.epochs.empty()) all.epoch = result.epochs.back().noise_scale;
  return all;
}

// The gradient of some rows: how far one plain step of rate 1 goes.
std::vector<double> gradient(const NamedTensors& weights, const Tensor& x, const Tensor& y) {
  Cluster cluster;
  Trainer trainer(cluster, perceptron(), {.optimizer = optim::sgd(1), .threads = 1, .lanes = 1});
  trainer.build({DType::f32, {1, 6, 6}});
  trainer.load_weights(weights);
  trainer.train_on_batch(x, y);
  const std::vector<float> before = flat(weights), after = flat(trainer.weights());
  std::vector<double> all;
  for (size_t i = 0; i < before.size(); ++i)
    all.push_back(static_cast<double>(before[i]) - static_cast<double>(after[i]));
  return all;
}

double square_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

TEST(GradientNoise, IsThatOfAPlainComputation) {
  Tensor x({kBatch, 1, 6, 6}), y({kBatch}, DType::i32);
  Random random{5};
  for (float& v : x.values<float>()) v = random.normal();
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(3));
  TrainingTask task = noisy_task();
  task.fit.batch_size = kBatch;
  task.fit.steps = task.fit.noise_every = 1;
  Cluster cluster;
  Trainer trainer(cluster, task.model, task.options);
  trainer.build({DType::f32, {1, 6, 6}});
  const NamedTensors weights = trainer.weights();
  std::optional<GradientNoise> noise;
  std::optional<double> norm;
  task.fit.after_step = {[&](const TrainingState& state) {
    noise = state.noise;
    norm = state.gradient_norm;
    return true;
  }};
  const std::vector<int64_t> order =
      data::Sampler(kBatch, {.batch_size = kBatch, .seed = task.options.seed})
          .samples(0, 0, kBatch);
  trainer.fit(data::tensor_dataset(x, y), task.fit);
  ASSERT_TRUE(noise.has_value());
  ASSERT_TRUE(norm.has_value());
  double small = 0;
  std::vector<double> whole;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int64_t begin = kBatch * lane / kLanes, end = kBatch * (lane + 1) / kLanes;
    Tensor lane_x({end - begin, 1, 6, 6}), lane_y({end - begin}, DType::i32);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = order[i];
      std::memcpy(lane_x.rows(i - begin, i - begin + 1).raw(), x.rows(sample, sample + 1).raw(),
                  36 * sizeof(float));
      lane_y.values<int32_t>()[i - begin] = y.values<int32_t>()[sample];
    }
    const std::vector<double> own = gradient(weights, lane_x, lane_y);
    const double share = static_cast<double>(end - begin) / kBatch;
    small += share * square_of(own);
    whole.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i) whole[i] += share * own[i];
  }
  const double big = square_of(whole), variance = kBatch / (kLanes - 1.0) * (small - big);
  EXPECT_NEAR(noise->variance, variance, 1e-4 * std::fabs(variance));
  EXPECT_NEAR(noise->square, big - variance / kBatch, 1e-4 * big);
  EXPECT_NEAR(*norm, std::sqrt(big), 1e-4 * std::sqrt(big));
}

// Samples that scatter around a known gradient: both numbers are right on average.
TEST(GradientNoise, IsRightOnAverage) {
  constexpr int kTrials = 4000, kWidth = 3;
  constexpr double kMean = 0.5, kDeviation = 2;
  Random random{7};
  double variance = 0, square = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<LaneNoise> lanes(kLanes);
    std::vector<double> sum(kWidth);
    for (int lane = 0; lane < kLanes; ++lane) {
      std::vector<double> own(kWidth);
      for (int64_t i = kBatch * lane / kLanes; i < kBatch * (lane + 1) / kLanes; ++i)
        for (double& v : own) v += (kMean + kDeviation * random.normal()) / kBatch;
      const int64_t count = kBatch * (lane + 1) / kLanes - kBatch * lane / kLanes;
      lanes[lane] = {square_of(own), static_cast<double>(count)};
      for (int k = 0; k < kWidth; ++k) sum[k] += own[k];
    }
    const auto noise = gradient_noise(lanes, kBatch, square_of(sum));
    variance += noise->variance / kTrials;
    square += noise->square / kTrials;
  }
  EXPECT_NEAR(variance, kWidth * kDeviation * kDeviation, 0.4);
  EXPECT_NEAR(square, kWidth * kMean * kMean, 0.1);
  EXPECT_FALSE(gradient_noise(std::vector<LaneNoise>{{1, 1}}, kBatch, 1).has_value());
  EXPECT_FALSE(gradient_noise(std::vector<LaneNoise>{{0, 0}, {1, 1}}, 1, 1).has_value());
}

void expect_same(const Measured& expected, const Measured& got, const std::string& what) {
  ASSERT_EQ(expected.noise.size(), got.noise.size()) << what;
  for (size_t i = 0; i < got.noise.size(); ++i) {
    EXPECT_EQ(expected.noise[i].variance, got.noise[i].variance) << what;
    EXPECT_EQ(expected.noise[i].square, got.noise[i].square) << what;
  }
  EXPECT_EQ(expected.scales, got.scales) << what;
  EXPECT_EQ(expected.epoch, got.epoch) << what;
}

TEST(GradientNoise, IsTheSameOnAnyNumberOfWorkers) {
  TrainingTask task = noisy_task();
  task.options.optimizer.clip_norm = 0.5;
  task.fit.noise_every = 1;
  Cluster one;
  const Measured expected = measured(one, task);
  EXPECT_EQ(expected.noise.size(), 4U);
  EXPECT_TRUE(expected.epoch.has_value());
  for (const int workers : {2, 3})
    on_workers(workers, [&](int, Cluster& cluster) {
      expect_same(expected, measured(cluster, task), fmt::format("{} workers", workers));
    });
  for (const char* parts : {"optimizer", "weights"}) {
    TrainingTask sharded = task;
    sharded.options.strategy_options = {ShardingOptions{.sharding = parts}};
    on_workers(2, [&](int, Cluster& cluster) {
      expect_same(expected, measured(cluster, sharded), parts);
    });
  }
}

// Measuring changes nothing, and the sums of an epoch survive a resume in its middle.
TEST(GradientNoise, LeavesTheTrainingAsItIs) {
  TrainingTask task = noisy_task();
  Cluster cluster;
  const Measured whole = measured(cluster, task);
  Trainer first(cluster, task.model, task.options), second(cluster, task.model, task.options);
  TrainingTask half = task;
  half.fit.steps = 3;
  first.fit(half.set, half.fit);
  second.build({DType::f32, {1, 6, 6}});
  second.restore(first.checkpoint());
  const FitResult result = second.fit(task.set, task.fit);
  EXPECT_EQ(result.epochs.back().noise_scale, whole.epoch);
  TrainingTask silent = task;
  silent.fit.noise_every = 0;
  EXPECT_TRUE(same_bits(flat(second.weights()), flat(train_task(cluster, silent).weights)));
}

// The norms of a run's gradients, by step.
std::map<int64_t, double> norms(Cluster& cluster, TrainingTask task) {
  std::map<int64_t, double> all;
  task.fit.after_step = {[&](const TrainingState& state) {
    if (state.gradient_norm) all[state.step] = *state.gradient_norm;
    return true;
  }};
  Trainer(cluster, task.model, task.options).fit(task.set, task.fit);
  return all;
}

TEST(GradientNorm, IsMeasuredNowAndThenOrWhereItMayBeClipped) {
  TrainingTask task = noisy_task();
  task.fit.noise_every = 0;
  task.fit.steps = 22;
  Cluster one;
  const std::map<int64_t, double> rare = norms(one, task);
  ASSERT_EQ(rare.size(), 2U);
  EXPECT_TRUE(rare.contains(1) && rare.contains(21));
  task.options.optimizer.clip_norm = 1e-3;  // what is clipped is measured before
  const std::map<int64_t, double> each = norms(one, task);
  EXPECT_EQ(each.size(), 22U);
  EXPECT_EQ(each.at(1), rare.at(1));
  on_workers(2, [&](int, Cluster& cluster) { EXPECT_EQ(norms(cluster, task), each); });
}

}  // namespace
}  // namespace artel
