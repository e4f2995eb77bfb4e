// More workers than lanes: some stand by, and the bits stay.
#include <gtest/gtest.h>

#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/tensor.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

constexpr int kFewLanes = 2;

TrainingTask two_lanes() {
  TrainingTask task = perceptron_task();
  task.options.lanes = kFewLanes;
  task.options.strategy_options = {ShardsOptions{.shards = 2}};
  task.fit.epochs = 2;
  return task;
}

// A run of two lanes that one worker has begun.
checkpoint::Checkpoint begun(TrainingTask task) {
  task.fit.steps = 1;
  Cluster one;
  return train_task(one, task);
}

// The whole run by one worker, and its rest by others: with what the options say beyond two lanes.
struct StandBy {
  std::string name;
  int workers;
  StrategyOptions options;
  std::string strategy = "auto";
};

checkpoint::Checkpoint resumed_by_more(Cluster& cluster, const TrainingTask& task,
                                       const StandBy& with, checkpoint::Checkpoint& half) {
  TrainerOptions options = task.options;
  options.strategy = with.strategy;
  options.strategy_options = with.options;
  options.strategy_options.of<ShardsOptions>() = task.options.strategy_options.of<ShardsOptions>();
  Trainer trainer(cluster, task.model, options);
  trainer.build({DType::f32, {1, 6, 6}});
  if (cluster.rank() == 0) trainer.restore(half);
  trainer.fit(task.set, task.fit);
  return trainer.checkpoint();
}

TEST(StandBy, WorkersWithoutLanesFollow) {
  const TrainingTask task = two_lanes();
  Cluster one;
  const checkpoint::Checkpoint expected = train_task(one, task);
  checkpoint::Checkpoint half = begun(task);
  const std::vector<StandBy> all = {
      {"in step", 4, {}},
      {"coordinator", 3, {}, "coordinator"},
      {"optimizer in parts", 3, {ShardingOptions{.sharding = "optimizer"}}},
      {"gradients in parts", 4, {ShardingOptions{.sharding = "gradients"}}},
      {"weights in parts", 4, {ShardingOptions{.sharding = "weights"}}},
      {"pipelines", 6, {PipelineOptions{.pipeline = 2}}},
      {"tensor groups", 6, {TensorOptions{.tensor = 2}}},
      {"a mesh", 12, {PipelineOptions{.pipeline = 2}, TensorOptions{.tensor = 2}}},
      {"pipelines with gradients in parts",
       6,
       {PipelineOptions{.pipeline = 2}, ShardingOptions{.sharding = "gradients"}}}};
  for (const StandBy& with : all)
    on_workers(with.workers, [&](int rank, Cluster& cluster) {
      const checkpoint::Checkpoint got = resumed_by_more(cluster, task, with, half);
      EXPECT_TRUE(same_bits(flat(expected.weights), flat(got.weights)))
          << with.name << ", worker " << rank;
      EXPECT_TRUE(rank > 0 || same_bits(flat(expected.optimizer), flat(got.optimizer)))
          << with.name;
    });
}

// Lossy training has no bits to compare with: all workers agree, and the loss falls as without
// standby workers.
TEST(StandBy, WorkersWithoutLanesAddNothingToLossySums) {
  const TrainingTask task = two_lanes();
  checkpoint::Checkpoint half = begun(task);
  const std::vector<StandBy> all = {{"ring", 4, {}, "ring"},
                                    {"int8", 3, {PackingOptions{.compress = "int8"}}},
                                    {"sign", 3, {PackingOptions{.compress = "sign"}}},
                                    {"top-k", 3, {PackingOptions{.compress = "top-k 10%"}}}};
  for (const StandBy& with : all) {
    std::vector<float> of_two;
    for (const int workers : {kFewLanes, with.workers}) {
      std::vector<std::vector<float>> weights(static_cast<size_t>(workers));
      on_workers(workers, [&](int rank, Cluster& cluster) {
        weights[static_cast<size_t>(rank)] =
            flat(resumed_by_more(cluster, task, with, half).weights);
      });
      for (const auto& own : weights) EXPECT_TRUE(same_bits(own, weights[0])) << with.name;
      if (workers == kFewLanes) of_two = weights[0];
      double off = 0;
      for (size_t i = 0; i < of_two.size(); ++i)
        off = std::max(off, double{std::abs(of_two[i] - weights[0][i])});
      EXPECT_LT(off, 0.05) << with.name;
    }
  }
}

TEST(StandBy, IsRefusedWhereWorkersTrainApart) {
  const TrainingTask task = two_lanes();
  checkpoint::Checkpoint half = begun(task);
  const auto refused = [](Cluster& cluster, const TrainingTask& task, const StandBy& with,
                          checkpoint::Checkpoint& half) {
    try {
      resumed_by_more(cluster, task, with, half);
      ADD_FAILURE() << with.name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("try -n 2, or a new run with cluster.lanes = 3"),
                std::string::npos)
          << error.what();
    }
  };
  const StandBy local = {"local steps", 3, {LocalStepsOptions{.local_steps = 2}}};
  on_workers(3, [&](int, Cluster& cluster) { refused(cluster, task, local, half); });
  TrainingTask plain = task;
  plain.options.strategy_options = {};
  checkpoint::Checkpoint half_of_plain = begun(plain);
  const StandBy served = {.name = "servers", .workers = 3, .options = {}, .strategy = "ps"};
  EXPECT_THROW(
      on_workers(
          3, [&](int, Cluster& cluster) { refused(cluster, plain, served, half_of_plain); }, 1),
      Error)
      << "the server learns of it, too";
}

}  // namespace
}  // namespace artel
