// Weights that become zero during training stay zero: on any number of workers, after a resume.
#include "artel/train/step/pruning.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/train/strategies/pipeline.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

int64_t zero_weights(const NamedTensors& weights) {
  int64_t zeros = 0;
  for (const NamedTensor& weight : weights)
    if (weight.tensor.shape().rank() > 1)
      zeros += std::ranges::count(weight.tensor.values<float>(), 0.0F);
  return zeros;
}

TEST(Pruning, TheSmallestOfAllOrOfEachBecomeZero) {
  for (const bool global : {true, false}) {
    std::vector<float> a = {1, -2, 3, -4}, b = {0.1F, -0.2F, 0.3F, 5}, average = {1, 1, 1, 1};
    prune_smallest({{"a", a, {}}, {"b", b, average}}, 0.5, global);
    if (global) {
      EXPECT_EQ(a, (std::vector<float>{0, -2, 3, -4}));
      EXPECT_EQ(b, (std::vector<float>{0, 0, 0, 5}));
      EXPECT_EQ(average, (std::vector<float>{0, 0, 0, 1}));
    } else {
      EXPECT_EQ(a, (std::vector<float>{0, 0, 3, -4}));
      EXPECT_EQ(b, (std::vector<float>{0, 0, 0.3F, 5}));
    }
  }
  std::vector<float> equal = {2, 2, -2, 2, 1};
  prune_smallest({{"equal", equal, {}}}, 0.6, true);
  EXPECT_EQ(equal, (std::vector<float>{0, 0, -2, 2, 0}));
  EXPECT_THROW(prune_smallest({{"equal", equal, {}}}, 1, true), Error);
}

TEST(Pruning, TheShareRisesToItsEnd) {
  const PruningOptions options = {.weights = 0.8, .begin = 10, .end = 30, .every = 10};
  EXPECT_FALSE(prunes_after(options, 10, 100));
  EXPECT_FALSE(prunes_after(options, 15, 100));
  EXPECT_TRUE(prunes_after(options, 20, 100));
  EXPECT_TRUE(prunes_after(options, 30, 100));
  EXPECT_FALSE(prunes_after(options, 40, 100));
  EXPECT_NEAR(zeros_after(options, 20, 100), 0.8 * (1 - 0.125), 1e-12);
  EXPECT_EQ(zeros_after(options, 30, 100), 0.8);
  EXPECT_TRUE(prunes_after({.weights = 0.5, .every = 7}, 50, 100));  // half of all steps
}

TrainingTask gradual() {
  TrainingTask task = small_task(convolutional());
  task.options.pruning = {.weights = 0.7, .begin = 1, .end = 5, .every = 2};
  task.fit.epochs = 3;
  return task;
}

TEST(Pruning, WorkersGiveTheBitsOfOne) {
  const TrainingTask task = gradual();
  Cluster one;
  const NamedTensors weights = train_task(one, task).weights;
  const std::vector<float> expected = flat(weights);
  int64_t all = 0;
  for (const NamedTensor& weight : weights)
    if (weight.tensor.shape().rank() > 1) all += weight.tensor.elements();
  EXPECT_EQ(zero_weights(weights), static_cast<int64_t>(0.7 * static_cast<double>(all)));
  for (const int workers : {2, 3})
    on_workers(workers, [&](int, Cluster& cluster) {
      EXPECT_TRUE(same_bits(flat(train_task(cluster, task).weights), expected)) << workers;
    });
  TrainingTask threads = task;
  threads.options.threads = 2;
  Cluster another;
  EXPECT_TRUE(same_bits(flat(train_task(another, threads).weights), expected));
}

TEST(Pruning, AResumedRunGivesTheSameBits) {
  for (const int64_t step : {2, 3, 4, 6}) {
    TrainingTask task = gradual();
    Cluster one, two, three;
    const std::vector<float> expected = flat(train_task(one, task).weights);
    const TemporaryFolder folder;
    task.fit.checkpoints = folder / "checkpoints";
    task.fit.after_step.push_back([&](const TrainingState& state) { return state.step < step; });
    train_task(two, task);
    task.fit.after_step.clear();
    task.fit.resume = true;
    EXPECT_TRUE(same_bits(flat(train_task(three, task).weights), expected)) << step;
  }
}

TEST(Pruning, AveragesBecomeZero) {
  TrainingTask task = gradual();
  task.options.optimizer.average = 0.9;
  Cluster cluster;
  Trainer trainer(cluster, task.model, task.options);
  const FitResult result = trainer.fit(task.set, task.fit);
  EXPECT_EQ(zero_weights(result.averaged), zero_weights(trainer.weights()));
}

TEST(Pruning, WorkersWithPartsAreRefused) {
  TrainingTask task = gradual();
  task.options.strategy_options.of<PipelineOptions>().pipeline = 2;
  on_workers(2, [&](int, Cluster& cluster) { EXPECT_THROW(train_task(cluster, task), Error); });
  task = gradual();
  task.options.strategy_options.of<LocalStepsOptions>().local_steps = 4;
  on_workers(2, [&](int, Cluster& cluster) { EXPECT_THROW(train_task(cluster, task), Error); });
}

TEST(Pruning, AScheduleHasAnOrder) {
  TrainingTask task = gradual();
  task.options.pruning.end = 1;
  Cluster cluster;
  EXPECT_THROW(Trainer(cluster, task.model, task.options), Error);
}

// Without a schedule, what is zero at the beginning stays so, in pipelines, too.
TEST(Pruning, ZerosAreKeptByAllStrategies) {
  TrainingTask task = small_task(perceptron());
  task.options.pruning = {.keep_zeros = true};
  const auto pruned = [&](Cluster& cluster) {
    Trainer trainer(cluster, task.model, task.options);
    trainer.build({DType::f32, {1, 6, 6}});
    NamedTensors weights = trainer.weights();
    std::vector<PrunedValues> values;
    for (NamedTensor& weight : weights) {
      weight.tensor = weight.tensor.clone();
      if (weight.tensor.shape().rank() > 1)
        values.push_back({weight.name, weight.tensor.values<float>(), {}});
    }
    prune_smallest(values, 0.6, true);
    trainer.load_weights(weights);
    const int64_t before = zero_weights(weights);
    trainer.fit(task.set, task.fit);
    EXPECT_EQ(zero_weights(trainer.weights()), before);
    return flat(trainer.weights());
  };
  Cluster one;
  const std::vector<float> expected = pruned(one);
  task.options.strategy_options.of<PipelineOptions>().pipeline = 2;
  on_workers(2, [&](int, Cluster& cluster) { EXPECT_TRUE(same_bits(pruned(cluster), expected)); });
}

}  // namespace
}  // namespace artel
