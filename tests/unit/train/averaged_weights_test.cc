// Averaged weights: their values, and tests that use them, on any division among workers.
#include <gtest/gtest.h>

#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/tensor.h"
#include "tests/unit/train/tasks.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

constexpr double kKept = 0.8;
constexpr int64_t kFrom = 3;

TrainingTask averaged_task(double kept = kKept) {
  TrainingTask task = small_task(convolutional());
  task.options.optimizer.average = kept;
  task.options.optimizer.average_from = kFrom;
  task.fit.epochs = 3;
  return task;
}

// The weights that a moving average, or a mean (`kept` 1), of these makes.
NamedTensors average_of(const std::vector<NamedTensors>& steps, double kept) {
  NamedTensors average;
  for (size_t step = 1; step <= steps.size(); ++step) {
    const int64_t averaged = static_cast<int64_t>(step) - kFrom + 1;
    if (averaged <= 1) {
      average.clear();
      for (const auto& [name, tensor] : steps[step - 1]) average.push_back({name, tensor.clone()});
      continue;
    }
    const double share = std::max(1 - kept, 1.0 / static_cast<double>(averaged));
    for (size_t i = 0; i < average.size(); ++i) {
      const std::span<const float> now = steps[step - 1][i].tensor.values<float>();
      const std::span<float> mean = average[i].tensor.values<float>();
      for (size_t k = 0; k < mean.size(); ++k)
        mean[k] += static_cast<float>(share) * (now[k] - mean[k]);
    }
  }
  return average;
}

// The expected test result: the loss of a network with the average of the weights after each step,
// and the running statistics of the last one.
TEST(AveragedWeights, AreWhatTestsJudge) {
  for (const double kept : {kKept, 1.0}) {
    TrainingTask task = averaged_task(kept);
    Cluster cluster;
    Trainer trainer(cluster, task.model, task.options);
    std::vector<NamedTensors> steps;
    std::vector<double> expected;
    Cluster other;
    Trainer judge(other, task.model, task.options);
    judge.build({DType::f32, {1, 6, 6}});
    task.fit.after_step = {[&](const TrainingState&) {
      steps.push_back(trainer.weights());
      return true;
    }};
    task.fit.after_epoch = {[&](const TrainingState& state) {
      NamedTensors average = average_of(steps, kept);
      for (const ParameterEntry& entry : trainer.layout().entries())
        if (entry.is_state)
          for (NamedTensor& weight : average)
            if (weight.name == entry.name) weight.tensor = *find_tensor(steps.back(), entry.name);
      judge.load_weights(average);
      expected.push_back(judge.evaluate(task.fit.validation).loss);
      EXPECT_TRUE(state.averaged);
      EXPECT_NEAR(state.test_loss, expected.back(), 1e-6);
      if (state.step >= kFrom) {
        EXPECT_NE(state.test_loss, trainer.evaluate(task.fit.validation).loss);
      }
      return true;
    }};
    const FitResult result = trainer.fit(task.set, task.fit);
    ASSERT_EQ(expected.size(), 3U);
    EXPECT_EQ(result.best->value, std::min({result.epochs[0].test_loss, result.epochs[1].test_loss,
                                            result.epochs[2].test_loss}));
    judge.load_weights(result.averaged);
    EXPECT_EQ(judge.evaluate(task.fit.validation).loss, result.last.test_loss);
  }
}

struct Judged {
  std::vector<float> weights, averaged;
  std::vector<double> losses;
};

Judged judged(Cluster& cluster, const TrainingTask& task) {
  Trainer trainer(cluster, task.model, task.options);
  const FitResult result = trainer.fit(task.set, task.fit);
  Judged all = {flat(trainer.weights()), flat(result.averaged), {}};
  for (const TrainingState& epoch : result.epochs) all.losses.push_back(epoch.test_loss);
  return all;
}

void expect_same(const Judged& expected, const Judged& got, const std::string& what) {
  EXPECT_TRUE(same_bits(expected.weights, got.weights)) << what;
  EXPECT_TRUE(same_bits(expected.averaged, got.averaged)) << what;
  EXPECT_EQ(expected.losses, got.losses) << what;
}

TEST(AveragedWeights, AreTheSameHoweverWorkersShareThem) {
  const TrainingTask task = averaged_task();
  Cluster one;
  const Judged expected = judged(one, task);
  ASSERT_EQ(expected.losses.size(), 3U);
  EXPECT_FALSE(same_bits(expected.weights, expected.averaged));
  const std::vector<std::pair<std::string, StrategyOptions>> ways = {
      {"all on each", {}},
      {"optimizer in parts", {ShardingOptions{.sharding = "optimizer"}}},
      {"weights in parts", {ShardingOptions{.sharding = "weights"}}},
      {"a pipeline", {PipelineOptions{.pipeline = 2}}},
      {"pipelines with parts",
       {PipelineOptions{.pipeline = 2}, ShardingOptions{.sharding = "optimizer"}}}};
  for (const auto& [what, options] : ways) {
    TrainingTask shared = task;
    shared.options.strategy_options = options;
    on_workers(4, [&, what = what](int, Cluster& cluster) {
      expect_same(expected, judged(cluster, shared), what);
    });
  }
}

TEST(AveragedWeights, OfLayersThatWorkersShareAreThoseOfOne) {
  TrainingTask task = averaged_task();
  task.model = perceptron();
  task.options.strategy_options = {ShardsOptions{.shards = 2}};
  Cluster one;
  const Judged expected = judged(one, task);
  task.options.strategy_options = {ShardsOptions{.shards = 2}, TensorOptions{.tensor = 2}};
  on_workers(4, [&](int, Cluster& cluster) {
    expect_same(expected, judged(cluster, task), "tensor groups");
  });
}

TEST(AveragedWeights, ComeFromParameterServers) {
  TrainingTask task = averaged_task();
  Cluster one;
  const Judged expected = judged(one, task);
  task.options.strategy = "ps";
  on_workers_and_servers(2, 2, [&](int, Cluster& cluster) {
    expect_same(expected, judged(cluster, task), "servers");
  });
}

// The mean over the workers, as the checkpoint has it.
TEST(AveragedWeights, OfLocalStepsAreTheSameOnAllWorkers) {
  TrainingTask task = averaged_task();
  task.options.strategy_options = {LocalStepsOptions{.local_steps = 2}};
  std::vector<Judged> all(3);
  on_workers(3, [&](int rank, Cluster& cluster) { all[rank] = judged(cluster, task); });
  for (const Judged& each : all) expect_same(all.front(), each, "local steps");
  EXPECT_FALSE(same_bits(all.front().weights, all.front().averaged));
}

// A run that was not averaged begins to be where it is.
TEST(AveragedWeights, BeginWithTheWeightsOfACheckpoint) {
  TrainingTask task = averaged_task(0);
  task.fit.epochs = 1;
  Cluster cluster;
  const checkpoint::Checkpoint saved = train_task(cluster, task);
  task.options.optimizer.average = 1;
  task.options.optimizer.average_from = 1;
  Trainer trainer(cluster, task.model, task.options);
  trainer.build({DType::f32, {1, 6, 6}});
  trainer.restore(saved);
  task.fit.steps = saved.step + 1;
  task.fit.epochs = 0;
  const FitResult result = trainer.fit(task.set, task.fit);
  const NamedTensors after = trainer.weights();
  const auto share = 1 / static_cast<float>(saved.step + 1);
  for (const ParameterEntry& entry : trainer.layout().entries()) {
    if (entry.is_state) continue;
    const auto before = find_tensor(saved.weights, entry.name)->values<float>();
    const auto now = find_tensor(after, entry.name)->values<float>();
    const auto average = find_tensor(result.averaged, entry.name)->values<float>();
    for (size_t i = 0; i < average.size(); ++i)
      ASSERT_NEAR(average[i], before[i] + share * (now[i] - before[i]), 1e-6) << entry.name;
  }
}

}  // namespace
}  // namespace artel
