// Workers that keep only a part of the optimizer's memory, the gradients or the weights have the
// bits of one that keeps all.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "artel/exec/program.h"
#include "artel/optim/norms.h"
#include "artel/train/parts/passing_weights.h"
#include "artel/train/parts/shards.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

constexpr const char* kLevels[] = {"optimizer", "gradients", "weights"};

// Layers of several chunks of norms, so that tensors are cut.
Model wide() {
  return nn::sequential({nn::flatten(), nn::dense(400), nn::relu(), nn::dropout(0.2),
                         nn::dense(120), nn::relu(), nn::dense(3)});
}

TrainingTask sharded(TrainingTask task, const std::string& sharding) {
  task.options.strategy_options = {ShardingOptions{.sharding = sharding}};
  return task;
}

void expect_bits_of_one(const TrainingTask& task, int workers, const std::string& sharding) {
  Cluster one;
  const checkpoint::Checkpoint expected = train_task(one, task);
  on_workers(workers, [&](int rank, Cluster& cluster) {
    const checkpoint::Checkpoint got = train_task(cluster, sharded(task, sharding));
    EXPECT_TRUE(same_bits(flat(expected.weights), flat(got.weights)))
        << "worker " << rank << " of " << workers << ", " << sharding;
    EXPECT_TRUE(rank > 0 || same_bits(flat(expected.optimizer), flat(got.optimizer)))
        << workers << " workers, " << sharding;
  });
}

TEST(Shards, CoverEachTensorOnceAndCutBetweenChunks) {
  KernelChoices choices;
  ModelGraph step = training_graph(wide(), {DType::f32, {4, 1, 6, 6}}, {DType::i32, {4}},
                                   loss_by_name("cross_entropy"));
  const Program program(std::move(step.graph), {}, choices);
  for (const size_t bucket_bytes : {size_t{1}, size_t{100'000}, size_t{4} << 20})
    for (const int workers : {1, 2, 3, 7}) {
      const SummedRegion region(program, {}, 1, bucket_bytes);
      const Shards shards(region, workers);
      ASSERT_EQ(shards.buckets(), static_cast<int>(region.buckets().size()));
      std::vector<size_t> next(region.parts().size(), 0);
      std::vector<size_t> kept(static_cast<size_t>(workers), 0);
      for (int bucket = 0; bucket < shards.buckets(); ++bucket)
        for (int worker = 0; worker < workers; ++worker)
          for (const Slice& slice : shards.of(worker, bucket)) {
            EXPECT_EQ(slice.first, next[slice.part]);
            EXPECT_EQ(slice.first % optim::kNormChunk, 0U);
            next[slice.part] += slice.count;
            kept[worker] += slice.count;
          }
      for (size_t i = 0; i < next.size(); ++i)
        EXPECT_EQ(next[i] * sizeof(float), region.parts()[i].bytes);
      const size_t all = std::accumulate(kept.begin(), kept.end(), size_t{0});
      for (const size_t each : kept)
        EXPECT_LT(each, all / workers + region.buckets().size() * 2 * optim::kNormChunk);
      for (int worker = 0; worker < workers; ++worker) {
        const std::vector<bool> staying = shards.staying(worker);
        const auto padding = static_cast<double>(region.buckets().size() * 16);
        double left = static_cast<double>(kept[worker]) + padding;
        double least = left;  // of what is given back
        for (int bucket = 0; bucket < shards.buckets(); ++bucket) {
          double theirs = 0;
          for (int other = 0; other < workers; ++other)
            for (const Slice& slice : shards.of(other, bucket))
              theirs += other == worker ? 0 : static_cast<double>(slice.count);
          if (staying[bucket])
            left -= theirs;
          else
            least = std::min(least, theirs);
        }
        EXPECT_GE(left, 0);
        EXPECT_GT(least + padding, left - padding);
      }
    }
}

TEST(Sharding, GivesTheBitsOfOneWorker) {
  TrainingTask task = small_task(wide());
  task.options.optimizer = optim::adam(0.01);
  for (const int workers : {2, 3, 4})
    for (const char* level : kLevels) expect_bits_of_one(task, workers, level);
}

TEST(Sharding, NormsAreThoseOfOneWorker) {
  TrainingTask task = small_task(wide());
  for (optim::OptimizerConfig optimizer :
       {optim::lamb(0.01), optim::lars(0.5), optim::adamw(0.01), optim::sgd(0.1)})
    for (const double clip : {0.0, 0.2}) {
      optimizer.clip_norm = clip;
      task.options.optimizer = optimizer;
      for (const char* level : {"optimizer", "weights"}) expect_bits_of_one(task, 3, level);
    }
}

TEST(Sharding, TrainsStatisticsAndTiedWeights) {
  for (const TrainingTask& task : {small_task(convolutional()), large_table_task()})
    for (const char* level : kLevels)
      for (const int workers : {2, 4}) expect_bits_of_one(task, workers, level);
}

TEST(Sharding, LanesMayBeUnequalOrEmptyAndRunSideBySide) {
  TrainingTask task = small_task(convolutional());
  task.fit.batch_size = 27;
  task.fit.keep_last_batch = true;
  task.options.lanes = 9;
  task.options.threads = 2;
  for (const char* level : kLevels) {
    expect_bits_of_one(task, 2, level);
    expect_bits_of_one(task, 4, level);
  }
  task.fit.batch_size = 36;  // then 4 samples in 9 lanes
  for (const char* level : kLevels) expect_bits_of_one(task, 2, level);
}

// More than a bucket, of which only some are there at a time.
Model deep() {
  return nn::sequential({nn::flatten(), nn::dense(1100), nn::relu(), nn::dense(1100), nn::relu(),
                         nn::dropout(0.1), nn::dense(1100), nn::relu(), nn::dense(3)});
}

TEST(Sharding, WeightsComeAndGoBucketByBucket) {
  TrainingTask task = small_task(deep());
  task.options.optimizer = optim::lamb(0.01);
  task.fit.epochs = 1;
  task.fit.validation = nullptr;
  task.options.lanes = 3;
  expect_bits_of_one(task, 2, "weights");  // one has more rounds of lanes than the other
  task.options.threads = 2;
  task.options.lanes = 6;
  expect_bits_of_one(task, 3, "weights");
  expect_bits_of_one(task, 2, "gradients");
}

TEST(Sharding, AWindowIsOpenWhileKernelsReadItsWeights) {
  KernelChoices choices;
  ModelGraph step = training_graph(deep(), {DType::f32, {4, 1, 6, 6}}, {DType::i32, {4}},
                                   loss_by_name("cross_entropy"));
  const Program program(std::move(step.graph), {}, choices);
  const SummedRegion region(program, {}, 1, size_t{1} << 20);
  const std::vector<WeightWindow> windows = weight_windows(program, region);
  // The last layers stay from the forward to the backward pass; the inputs of the first need no
  // gradient.
  ASSERT_EQ(region.buckets().size(), 3U);
  std::vector<int> buckets;
  for (const WeightWindow& window : windows) buckets.push_back(window.bucket);
  EXPECT_EQ(buckets, (std::vector{2, 1, 0, 1}));
  const Plan& plan = program.plan();
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
    for (const int input : plan.kernels[kernel].inputs) {
      const Buffer& buffer = plan.buffers[viewed(plan, input)];
      if (buffer.region != Region::parameters) continue;
      const std::string& name = program.graph().value(buffer.value).name;
      for (const SummedRegion::Part& part : region.parts())
        EXPECT_TRUE(part.name != name ||
                    std::any_of(windows.begin(), windows.end(),
                                [&](const WeightWindow& window) {
                                  const auto now = static_cast<int>(kernel);
                                  return region.buckets()[window.bucket].contains(part.offset) &&
                                         window.first <= now && now <= window.last;
                                }))
            << name << " in kernel " << kernel;
    }
}

TEST(Sharding, LeavesFrozenParametersAlone) {
  TrainingTask task = small_task(convolutional());
  task.options.freeze = {"0."};
  for (const char* level : kLevels) expect_bits_of_one(task, 2, level);
}

TEST(Sharding, ARunGoesOnWithAnyOther) {
  TrainingTask task = small_task(wide());
  task.options.optimizer = optim::lamb(0.01);
  task.options.optimizer.clip_norm = 0.3;
  Cluster one;
  const checkpoint::Checkpoint expected = train_task(one, task);
  TrainingTask half = task;
  half.fit.epochs = 1;
  checkpoint::Checkpoint begun = train_task(one, half);
  for (const char* level : kLevels) {
    checkpoint::Checkpoint next;
    on_workers(3, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, task.model, sharded(task, level).options);
      trainer.build({DType::f32, {1, 6, 6}});
      if (rank == 0) trainer.restore(begun);
      trainer.fit(task.set, task.fit);
      if (rank == 0) next = trainer.checkpoint();
    });
    EXPECT_TRUE(same_bits(flat(expected.weights), flat(next.weights))) << level;
    EXPECT_TRUE(same_bits(flat(expected.optimizer), flat(next.optimizer))) << level;
    on_workers(2, [&](int rank, Cluster& cluster) {
      const checkpoint::Checkpoint got = train_task(cluster, sharded(half, level));
      if (rank == 0) begun = got;
    });
  }
}

// One worker meets a bad sample in the middle of a step, while others wait for its weights.
TEST(Sharding, AnErrorOfOneWorkerStopsAll) {
  TrainingTask task = small_task(deep());
  task.options.check_numbers = true;
  task.fit.validation = nullptr;
  Tensor x({16, 1, 6, 6}), y({16}, DType::i32);
  x.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  task.set = data::tensor_dataset(x, y);
  for (const char* level : kLevels) {
    std::vector<std::string> messages(2);
    EXPECT_THROW(on_workers(2,
                            [&](int rank, Cluster& cluster) {
                              try {
                                train_task(cluster, sharded(task, level));
                              } catch (const Error& error) {
                                messages[rank] = error.what();
                                throw;
                              }
                            }),
                 Error);
    for (const std::string& message : messages)
      EXPECT_NE(message.find("dense of layer '1' produced nan"), std::string::npos) << message;
  }
}

TEST(Sharding, GoesTogetherWithPipelines) {
  TrainingTask tasks[] = {small_task(convolutional()), large_table_task(), small_task(wide())};
  tasks[2].options.optimizer = optim::lamb(0.01);
  tasks[2].options.optimizer.clip_norm = 0.2;
  for (const TrainingTask& task : tasks)
    for (const char* level : {"optimizer", "gradients"}) {
      Cluster one;
      const checkpoint::Checkpoint expected = train_task(one, task);
      TrainingTask mesh = sharded(task, level);
      mesh.options.strategy_options.of<PipelineOptions>().pipeline = 2;
      on_workers(4, [&](int rank, Cluster& cluster) {
        const checkpoint::Checkpoint got = train_task(cluster, mesh);
        EXPECT_TRUE(same_bits(flat(expected.weights), flat(got.weights))) << rank << " " << level;
        EXPECT_TRUE(rank > 0 || same_bits(flat(expected.optimizer), flat(got.optimizer))) << level;
      });
    }
}

// All workers gather weights in the same order, whatever the sizes of their lanes.
TEST(Sharding, LanesOfUnequalSizeRecomputeUnderALimit) {
  expect_same_bits_under_limits(unequal_lanes_task(), {ShardingOptions{.sharding = "weights"}});
}

}  // namespace
}  // namespace artel
