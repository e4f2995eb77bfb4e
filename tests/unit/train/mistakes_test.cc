// The mistakes of a test: the most certain ones, on any number of workers.
#include <gtest/gtest.h>

#include "artel/train/loop/mistake_collector.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

data::Batch batch_of_labels(std::vector<int64_t> samples, const std::vector<int32_t>& labels) {
  data::Batch batch;
  batch.y = Tensor({static_cast<int64_t>(labels.size())}, DType::i32);
  std::copy(labels.begin(), labels.end(), batch.y.values<int32_t>().begin());
  batch.samples = std::move(samples);
  return batch;
}

Tensor scores_of(int64_t classes, const std::vector<float>& scores) {
  Tensor tensor({static_cast<int64_t>(scores.size()) / classes, classes});
  std::copy(scores.begin(), scores.end(), tensor.values<float>().begin());
  return tensor;
}

const data::SampleLayout kClasses = {.input = {1, 2, 2}, .target = {}, .classes = 2};

TEST(Mistakes, TheMostCertainOnesComeFirst) {
  MistakeCollector collector(3, kClasses);
  collector.add(batch_of_labels({10, 11, 12}, {0, 1, 1}), scores_of(2, {0, 1, 0, 5, 3, 0}));
  collector.add(batch_of_labels({13, 14, 15, 16}, {0, 0, -100, 1}),
                scores_of(2, {0, 1, 0, 2, 0, 9, 4, 4}));
  const std::vector<Mistake> mistakes = collector.gather(nullptr);
  ASSERT_EQ(mistakes.size(), 3u);
  EXPECT_EQ(mistakes[0].sample, 12);
  EXPECT_EQ(mistakes[0].label, 1);
  EXPECT_EQ(mistakes[0].answer, 0);
  EXPECT_NEAR(mistakes[0].probability, 0.9526, 1e-4);
  EXPECT_EQ(mistakes[1].sample, 14);
  EXPECT_EQ(mistakes[2].sample, 10);  // as certain as 13, and before it
}

TEST(Mistakes, OneScoreIsThatOfClassOne) {
  MistakeCollector collector(5, kClasses);
  collector.add(batch_of_labels({0, 1, 2}, {1, 0, 1}), scores_of(1, {-1, 2, 3}));
  const std::vector<Mistake> mistakes = collector.gather(nullptr);
  ASSERT_EQ(mistakes.size(), 2u);
  EXPECT_EQ(mistakes[0].sample, 1);
  EXPECT_EQ(mistakes[0].answer, 1);
  EXPECT_NEAR(mistakes[1].probability, 0.7311, 1e-4);
}

TEST(Mistakes, OnlySamplesWithOneClassHaveThem) {
  data::SampleLayout texts = kClasses;
  texts.target = {4};
  EXPECT_FALSE(MistakeCollector(5, texts).wants_any());
  data::SampleLayout values = kClasses;
  values.target_kind = data::TargetKind::values;
  EXPECT_FALSE(MistakeCollector(5, values).wants_any());
  EXPECT_FALSE(MistakeCollector(0, kClasses).wants_any());
}

std::vector<Mistake> mistakes_after(Cluster& cluster, TrainerOptions options) {
  Trainer trainer(cluster, network(), std::move(options));
  const FitResult result = trainer.fit(
      samples(), {.batch_size = 16, .epochs = 1, .validation = samples(), .mistakes = 7});
  EXPECT_TRUE(result.epochs.back().has_weights);
  return result.epochs.back().test_mistakes;
}

TEST(Mistakes, AreTheSameOnAnyNumberOfWorkers) {
  Cluster one;
  const std::vector<Mistake> expected = mistakes_after(one, trainer_options({}));
  ASSERT_EQ(expected.size(), 7u);
  for (size_t i = 1; i < expected.size(); ++i)
    EXPECT_GE(expected[i - 1].probability, expected[i].probability);
  for (const int workers : {2, 3})
    on_workers(workers, [&](int, Cluster& cluster) {
      EXPECT_EQ(mistakes_after(cluster, trainer_options({})), expected);
    });
  TrainerOptions stages = trainer_options({}), parts = trainer_options({});
  stages.strategy_options = {PipelineOptions{.pipeline = 2}};
  parts.strategy_options = {ShardingOptions{.sharding = "weights"}};
  for (const TrainerOptions& options : {stages, parts})
    on_workers(
        2, [&](int, Cluster& cluster) { EXPECT_EQ(mistakes_after(cluster, options), expected); });
}

// Without a test, no worker has all weights of a pipeline unless they are requested.
TEST(Mistakes, WithoutATestAPipelineHasItsParts) {
  for (const bool whole : {false, true})
    on_workers(2, [&](int, Cluster& cluster) {
      TrainerOptions options = trainer_options({});
      options.strategy_options = {PipelineOptions{.pipeline = 2}};
      Trainer trainer(cluster, network(), options);
      const FitResult result =
          trainer.fit(samples(), {.batch_size = 16, .epochs = 1, .gather_network = whole});
      EXPECT_EQ(result.epochs.back().has_weights, whole);
    });
}

// A run that is stopped at the last step of an epoch; its test follows when it is resumed.
double first_test_after_a_pause(Cluster& cluster, const TrainerOptions& options,
                                const std::filesystem::path& folder) {
  FitOptions fit = {.batch_size = 16,
                    .epochs = 3,
                    .validation = samples(),
                    .checkpoints = folder,
                    .gather_network = false};
  {
    FitOptions first = fit;
    first.after_step.push_back([](const TrainingState& state) { return state.step != 1; });
    const FitResult result = Trainer(cluster, network(), options).fit(samples(), first);
    EXPECT_EQ(result.last.step, 2);
    EXPECT_TRUE(result.epochs.empty());
  }
  fit.resume = true;
  return Trainer(cluster, network(), options).fit(samples(), fit).epochs.front().test_loss;
}

TEST(Mistakes, ATestAfterAPauseHasAllWeights) {
  TrainerOptions stages = trainer_options({}), parts = trainer_options({});
  stages.strategy_options = {PipelineOptions{.pipeline = 2}};
  parts.strategy_options = {ShardingOptions{.sharding = "weights"}};
  std::vector<double> losses;
  for (const TrainerOptions& options : {trainer_options({}), stages, parts}) {
    const TemporaryFolder folder;
    on_workers(2, [&](int rank, Cluster& cluster) {
      const double loss = first_test_after_a_pause(cluster, options, folder.path());
      if (rank == 0) losses.push_back(loss);
    });
  }
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_EQ(losses[2], losses[0]);
}

}  // namespace
}  // namespace artel
