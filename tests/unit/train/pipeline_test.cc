// Pipelines give the bits of one worker: any cut, schedule, number of pipelines and network.
#include <gtest/gtest.h>

#include "artel/plan/schedule.h"
#include "artel/train/strategies/pipeline.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

TrainingTask pipelined(TrainingTask task, int64_t workers, const std::string& schedule = "auto") {
  task.options.strategy_options = {PipelineOptions{.pipeline = workers, .schedule = schedule}};
  return task;
}

// All workers have the weights of one, and worker 0 the state of its optimizer.
void expect_same_bits(const TrainingTask& task, int workers, int64_t pipeline,
                      const std::string& schedule = "auto") {
  Cluster one;
  const checkpoint::Checkpoint expected = train_task(one, task);
  on_workers(workers, [&](int rank, Cluster& cluster) {
    const checkpoint::Checkpoint got = train_task(cluster, pipelined(task, pipeline, schedule));
    EXPECT_TRUE(same_bits(flat(expected.weights), flat(got.weights)))
        << "worker " << rank << " of " << workers << " in pipelines of " << pipeline << ", "
        << schedule;
    EXPECT_TRUE(rank > 0 || same_bits(flat(expected.optimizer), flat(got.optimizer)));
  });
}

TEST(Pipeline, GivesTheBitsOfOneWorker) {
  for (const int workers : {2, 3, 4}) expect_same_bits(small_task(perceptron()), workers, workers);
}

TEST(Pipeline, EveryScheduleGivesTheSameBits) {
  for (const std::string& schedule : plan::schedule_names())
    expect_same_bits(small_task(perceptron()), 2, 2, schedule);
}

TEST(Pipeline, PassesOnSkipsAndStatistics) {
  for (const char* schedule : {"gpipe", "1f1b", "zero_bubble", "interleaved"})
    for (const int workers : {2, 4})
      expect_same_bits(small_task(convolutional()), workers, workers, schedule);
}

TEST(Pipeline, TrainsTransformersWithTiedWeights) {
  for (const char* schedule : {"1f1b", "zero_bubble", "interleaved"})
    for (const int workers : {2, 4}) expect_same_bits(text_task(), workers, workers, schedule);
}

TEST(Pipeline, RowsOfATableThatIsTheLastLayerGoThere) {
  for (const std::string& schedule : plan::schedule_names())
    expect_same_bits(large_table_task(), 2, 2, schedule);
  for (const char* schedule : {"1f1b", "interleaved"}) {
    expect_same_bits(large_table_task(), 3, 3, schedule);
    expect_same_bits(large_table_task(), 4, 2, schedule);
  }
  TrainingTask task = large_table_task();
  task.options.check_memory = true;
  task.fit.batch_size = 9;
  task.fit.keep_last_batch = true;  // 6 samples in 8 lanes
  expect_same_bits(task, 2, 2);
}

TEST(Pipeline, SeveralShareTheLanes) {
  for (const auto& task : {small_task(convolutional()), text_task()})
    for (const char* schedule : {"gpipe", "zero_bubble"}) expect_same_bits(task, 4, 2, schedule);
}

// Two copies of the network need two lanes, although there are six workers.
TEST(Pipeline, TheDefaultNumberOfLanesIsThatOfOneWorker) {
  TrainingTask task = small_task(perceptron());
  task.options.lanes = 0;
  task.fit.batch_size = 6;  // in 4 lanes
  expect_same_bits(task, 6, 3);
}

TEST(Pipeline, LanesMayBeUnequalOrEmpty) {
  TrainingTask task = small_task(convolutional());
  task.fit.batch_size = 27;
  task.fit.keep_last_batch = true;  // 13 samples in 8 lanes
  task.options.lanes = 9;
  expect_same_bits(task, 2, 2);
  expect_same_bits(task, 4, 2);
  task.fit.batch_size = 36;  // then 4 samples in 9 lanes
  expect_same_bits(task, 2, 2, "zero_bubble");
}

TEST(Pipeline, RecomputesAndChecksMemory) {
  TrainingTask task = text_task();
  task.options.check_memory = true;
  task.options.memory_limit = 45 << 10;
  task.fit.epochs = 1;
  expect_same_bits(task, 2, 2, "zero_bubble");
  task = small_task(convolutional());
  task.options.check_memory = true;
  task.fit.epochs = 1;
  expect_same_bits(task, 3, 3, "1f1b");
}

// The stage that recomputes a convolution of another stage reads the weights of that stage.
TEST(Pipeline, LanesOfUnequalSizeRecomputeUnderALimit) {
  expect_same_bits_under_limits(unequal_lanes_task(), {PipelineOptions{.pipeline = 2}});
}

// Lanes of one sample look up fewer rows than the table has, lanes of two look up more.
TEST(Pipeline, LanesOfUnequalSizeFinishATableInTheSameStage) {
  TrainingTask task = text_task();
  task.model = nn::gpt2(
      {.vocabulary = 9, .positions = 6, .width = 8, .depth = 3, .heads = 2, .dropout = 0.1});
  task.set = task.fit.validation = tokens(9);
  task.fit.batch_size = 12;
  for (const char* schedule : {"1f1b", "zero_bubble", "interleaved"})
    for (const int workers : {2, 3}) expect_same_bits(task, workers, workers, schedule);
}

TEST(Pipeline, StepsOnGivenBatchesAreTheSame) {
  const TrainingTask task = small_task(convolutional());
  const auto train_given = [&](Cluster& cluster, const TrainingTask& given) {
    Trainer trainer(cluster, given.model, given.options);
    Random random{9};
    for (int step = 0; step < 3; ++step) {
      Tensor x({10, 1, 6, 6}), y({10}, DType::i32);
      for (float& v : x.values<float>()) v = random.normal();
      for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(3));
      trainer.train_on_batch(x, y);
    }
    trainer.fit(given.set, given.fit);
    return flat(trainer.weights());
  };
  Cluster one;
  const std::vector<float> expected = train_given(one, task);
  on_workers(2, [&](int, Cluster& cluster) {
    EXPECT_TRUE(same_bits(expected, train_given(cluster, pipelined(task, 2))));
  });
}

TEST(Pipeline, ALossThatRunsAwayStopsAllStages) {
  TrainingTask task = small_task(perceptron());
  task.options.optimizer = optim::sgd(1e30);
  std::vector<std::string> messages(2);
  EXPECT_THROW(on_workers(2,
                          [&](int rank, Cluster& cluster) {
                            try {
                              train_task(cluster, pipelined(task, 2));
                            } catch (const Error& error) {
                              messages[rank] = error.what();
                              throw;
                            }
                          }),
               Error);
  for (const std::string& message : messages)
    EXPECT_NE(message.find("the loss is"), std::string::npos) << message;
}

}  // namespace
}  // namespace artel
