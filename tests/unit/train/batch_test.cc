// Steps on batches of the caller's.
#include <gtest/gtest.h>

#include "artel/data/loader.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// The global batches that a fit with this seed makes steps on.
std::vector<data::Batch> batches_of_fit(uint64_t seed, int64_t batch, int64_t epochs) {
  data::Loader loader(
      samples(),
      {.sampling = {.batch_size = batch, .seed = seed, .last_batch = data::LastBatch::keep},
       .epochs = epochs});
  std::vector<data::Batch> batches;
  while (std::optional<data::Batch> next = loader.next()) batches.push_back(std::move(*next));
  return batches;
}

TEST(TrainOnBatch, GivesTheBitsOfFitOnAnyNumberOfWorkers) {
  Setting setting;
  setting.fit = {.keep_last_batch = true, .epochs = 2};
  const std::vector<float> expected = alone(setting);
  const std::vector<data::Batch> batches = batches_of_fit(4, setting.batch, 2);
  ASSERT_EQ(batches.size(), 8u);
  const auto train_on = [&](Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options(setting));
    int64_t step = 0;
    for (const data::Batch& batch : batches) {
      const TrainingState state = trainer.train_on_batch(batch.x, batch.y);
      EXPECT_EQ(state.step, ++step);
      EXPECT_EQ(state.metrics.at(0).sums[1], static_cast<double>(batch.total));
    }
    return flat(trainer.weights());
  };
  Cluster cluster;
  EXPECT_TRUE(same_bits(expected, train_on(cluster)));
  for (const int workers : {2, 3})
    on_workers(workers, [&](int rank, Cluster& several) {
      EXPECT_TRUE(same_bits(expected, train_on(several))) << rank << " of " << workers;
    });
}

TEST(TrainOnBatch, GoesOnWithOtherMembers) {
  Setting setting;
  setting.fit = {.keep_last_batch = true, .epochs = 2};
  const std::vector<float> expected = alone(setting);
  const std::vector<data::Batch> batches = batches_of_fit(4, setting.batch, 2);
  on_workers(3, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options(setting));
    for (size_t i = 0; i < batches.size(); ++i) {
      if (i == 3 && rank == 2) return;
      if (i == 3) cluster.reform({1, 0});
      trainer.train_on_batch(batches[i].x, batches[i].y);
    }
    EXPECT_TRUE(same_bits(expected, flat(trainer.weights()))) << "worker " << rank;
  });
}

TEST(TrainOnBatch, LeavesTheDataOfAFitWhereItWas) {
  const std::vector<data::Batch> batches = batches_of_fit(4, 13, 1);
  Cluster cluster;
  Trainer trainer(cluster, network(), trainer_options({}));
  trainer.fit(samples(), {.batch_size = 13, .epochs = 3, .steps = 2});
  const std::string before = trainer.checkpoint().state;
  trainer.train_on_batch(batches[0].x, batches[0].y);
  const std::string after = trainer.checkpoint().state;
  const auto loader = [](const std::string& state) {
    const size_t begin = state.find("\"loader\"");
    return state.substr(begin, state.find('}', begin) - begin);
  };
  EXPECT_EQ(loader(before), loader(after));
}

TEST(TrainOnBatch, GoesOnBeforeAndAfterAFit) {
  const std::vector<data::Batch> batches = batches_of_fit(4, 13, 1);
  Cluster cluster;
  Trainer whole(cluster, network(), trainer_options({}));
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const data::Batch& batch : batches) whole.train_on_batch(batch.x, batch.y);
  // The same in two trainers.
  Trainer first(cluster, network(), trainer_options({})),
      second(cluster, network(), trainer_options({}));
  for (const data::Batch& batch : batches) first.train_on_batch(batch.x, batch.y);
  first.evaluate(samples());
  second.build({DType::f32, {1, 6, 6}});
  second.restore(first.checkpoint());
  for (const data::Batch& batch : batches) second.train_on_batch(batch.x, batch.y);
  EXPECT_TRUE(same_bits(flat(whole.weights()), flat(second.weights())));
  const FitResult result = second.fit(samples(), {.batch_size = 13, .epochs = 0, .steps = 9});
  EXPECT_EQ(result.last.step, 9);
}

TEST(TrainOnBatch, TakesALearningRate) {
  const data::Batch batch = batches_of_fit(4, 13, 1).front();
  Cluster cluster;
  Trainer trainer(cluster, network(), trainer_options({}));
  trainer.build({DType::f32, {1, 6, 6}});
  const Tensor before = trainer.parameters().get("8.weight");
  EXPECT_EQ(trainer.train_on_batch(batch.x, batch.y, 0.0).learning_rate, 0);
  const Tensor after = trainer.parameters().get("8.weight");
  EXPECT_TRUE(std::equal(before.values<float>().begin(), before.values<float>().end(),
                         after.values<float>().begin()));
}

// The residual of a lossy codec is used by the next call, through a fit and a checkpoint.
TEST(TrainOnBatch, KeepsWhatACodecHoldsBack) {
  const std::vector<data::Batch> batches = batches_of_fit(4, 13, 1);
  std::vector<float> whole, parts, restored;
  on_workers(2, [&](int rank, Cluster& cluster) {
    const TrainerOptions options = trainer_options({.compress = "top-k 10%"});
    const auto train_on = [&](Trainer& trainer) {
      for (const data::Batch& batch : batches) trainer.train_on_batch(batch.x, batch.y);
      return flat(trainer.weights());
    };
    Trainer once(cluster, network(), options), twice(cluster, network(), options),
        other(cluster, network(), options);
    train_on(once);
    const std::vector<float> at_once = train_on(once);
    train_on(twice);
    twice.fit(samples(), {.batch_size = 13, .steps = 4});  // has nothing left to do
    other.build({DType::f32, {1, 6, 6}});
    other.restore(twice.checkpoint());
    const std::vector<float> in_parts = train_on(twice), after_all = train_on(other);
    if (rank > 0) return;
    whole = at_once;
    parts = in_parts;
    restored = after_all;
  });
  EXPECT_TRUE(same_bits(whole, parts));
  EXPECT_TRUE(same_bits(whole, restored));
}

// Worker 0 alone has read that the run exchanges less.
TEST(TrainOnBatch, RefusesLocalStepsThatWereChosen) {
  const data::Batch batch = batches_of_fit(4, 13, 1).front();
  on_workers(2, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options({}));
    trainer.fit(samples(), {.batch_size = 13, .steps = 2});
    checkpoint::Checkpoint saved = trainer.checkpoint();
    const std::string none = "\"strategies\":{}";
    const size_t place = saved.state.find(none);
    ASSERT_NE(place, std::string::npos) << saved.state;
    saved.state.replace(place, none.size(),
                        R"("strategies":{"local steps":{"local_steps":"2","compress":""}})");
    if (rank == 0) trainer.restore(saved);
    try {
      trainer.train_on_batch(batch.x, batch.y);
      FAIL() << "a step of all workers among local ones";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what())
                      .starts_with("train_on_batch: got the strategy \"auto\" (Local steps)"))
          << error.what();
    }
    EXPECT_EQ(trainer.fit(samples(), {.batch_size = 13, .epochs = 2, .steps = 4}).last.step, 4);
  });
}

std::string refusal(const TrainerOptions& options, const Tensor& x, const Tensor& y) {
  Cluster cluster;
  Trainer trainer(cluster, network(), options);
  try {
    trainer.train_on_batch(x, y);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TrainOnBatch, RefusesWhatItCannotDo) {
  const Tensor x({16, 1, 6, 6}), y({16}, DType::i32);
  EXPECT_EQ(refusal(trainer_options({}), x, y), "");
  EXPECT_TRUE(refusal(trainer_options({}), x, Tensor({15}, DType::i32))
                  .starts_with("train_on_batch: got x f32[16, 1, 6, 6] and y i32[15]"));
  TrainerOptions cosine = trainer_options({});
  cosine.schedule.shape = optim::Cosine{};
  EXPECT_TRUE(
      refusal(cosine, x, y).starts_with("train_on_batch: the schedule needs the number of steps"));
}

TEST(TrainOnBatch, RefusesLocalSteps) {
  const Tensor x({16, 1, 6, 6}), y({16}, DType::i32);
  on_workers(2, [&](int, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options({.local_steps = 2}));
    try {
      trainer.train_on_batch(x, y);
      FAIL() << "a step of all workers among local ones";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what())
                      .starts_with("train_on_batch: got the strategy \"auto\" (Local steps)"))
          << error.what();
    }
  });
}

}  // namespace
}  // namespace artel
