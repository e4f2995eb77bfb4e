// Workers have copies of each other's parts of the state. After a loss, the others assemble it and
// continue with the bits of an undisturbed run.
#include "artel/train/parts/mirrors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "artel/base/time.h"
#include "artel/train/parts/restoration.h"
#include "artel/train/strategies/fitting_mesh.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/tensor.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

std::string text_of_ranges(const std::vector<KeptRange>& ranges) {
  std::string text;
  for (const KeptRange& range : ranges) text += fmt::format("{}+{} ", range.first, range.count);
  return text;
}

TEST(Mirrors, CopiesLieOnOtherMachinesWherePossible) {
  EXPECT_EQ(mirror_targets({0, 0}), (std::vector{1, 0}));
  EXPECT_EQ(mirror_targets({0, 0, 0}), (std::vector{1, 2, 0}));
  EXPECT_EQ(mirror_targets({0, 0, 1, 1}), (std::vector{2, 3, 0, 1}));
  for (const std::vector<int>& hosts :
       {std::vector{0, 1, 0, 1}, std::vector{0, 1, 2, 0}, std::vector{2, 2, 1, 0, 0, 1, 1}}) {
    const std::vector<int> targets = mirror_targets(hosts);
    std::set<int> all(targets.begin(), targets.end());
    EXPECT_EQ(all.size(), hosts.size());
    for (size_t rank = 0; rank < hosts.size(); ++rank)
      EXPECT_NE(hosts[rank], hosts[targets[rank]]) << "rank " << rank;
  }
  // One machine has most of the workers; still none keeps its own copy.
  const std::vector<int> targets = mirror_targets({0, 0, 0, 1});
  for (int rank = 0; rank < 4; ++rank) EXPECT_NE(targets[rank], rank);
}

TEST(Mirrors, WhatOthersKeepIsNotSent) {
  EXPECT_EQ(text_of_ranges(exclusive_ranges({{0, 10}}, {})), "0+10 ");
  EXPECT_EQ(text_of_ranges(exclusive_ranges({{0, 10}}, {{{0, 10}}})), "");
  EXPECT_EQ(text_of_ranges(exclusive_ranges({{0, 10}}, {{{2, 3}}, {{7, 9}}})), "0+2 5+2 ");
  EXPECT_EQ(text_of_ranges(exclusive_ranges({{0, 4}, {8, 4}}, {{{3, 6}}})), "0+3 9+3 ");
  EXPECT_EQ(text_of_ranges(exclusive_ranges({{5, 5}}, {{{0, 5}, {10, 5}}})), "5+5 ");
}

size_t ten_elements(const std::string&) { return 10; }

TEST(Mirrors, TheNewestWholeStepIsPutTogether) {
  // Worker 1 has what worker 0 lacks, of two steps; the newest one lacks an element.
  const std::vector<Inventory> workers = {
      {{{4, true, 0, 6, "a"}, {5, true, 0, 6, "a"}, {6, true, 0, 6, "a"}}},
      {{{4, true, 5, 5, "a"}, {5, true, 4, 6, "a"}, {6, true, 7, 3, "a"}}}};
  const Restoration found = restoration_in(to_text(plan_restoration(workers, ten_elements)));
  EXPECT_EQ(found.step, 5);
  EXPECT_EQ(found.text_from, 0);
  ASSERT_EQ(found.sources.size(), 2U);
  EXPECT_EQ(found.sources[0].worker, 0);
  EXPECT_EQ(found.sources[0].count, 6U);
  EXPECT_EQ(found.sources[1].worker, 1);
  EXPECT_EQ(found.sources[1].first, 6U);
  EXPECT_EQ(found.sources[1].count, 4U);
  EXPECT_EQ(found.sources[1].name, "a");
}

TEST(Mirrors, AStepNeedsAllTensorsAndItsText) {
  // No worker has the text of step 6, and step 5 lacks a tensor.
  const std::vector<Inventory> workers = {
      {{{6, false, 0, 10, "a"}, {6, false, 0, 10, "b c"}, {5, true, 0, 10, "a"}}},
      {{{4, true, 0, 10, "a"}, {4, false, 0, 10, "b c"}}}};
  const Restoration found = plan_restoration(workers, ten_elements);
  EXPECT_EQ(found.step, 4);
  EXPECT_EQ(found.text_from, 1);
  EXPECT_EQ(plan_restoration({{{{6, true, 0, 9, "a"}}}}, ten_elements).step, -1);
  EXPECT_EQ(plan_restoration({{}, {}}, ten_elements).step, -1);
}

TEST(Mirrors, InventoriesSurviveTheWay) {
  const StateCopy known = {7, "text", {{"a b", 3, {1, 2}}, {"c", 0, {4}}}},
                  unknown = {8, "", {{"c", 1, {5}}}};
  const Inventory read = inventory_in(inventory_text({&known, &unknown}));
  ASSERT_EQ(read.entries.size(), 3U);
  EXPECT_EQ(read.entries[0].name, "a b");
  EXPECT_EQ(read.entries[0].first, 3U);
  EXPECT_EQ(read.entries[0].count, 2U);
  EXPECT_TRUE(read.entries[1].has_text);
  EXPECT_EQ(read.entries[2].step, 8);
  EXPECT_FALSE(read.entries[2].has_text);
}

TEST(FittingMesh, DividesTheWorkersThereAre) {
  const auto pipeline = [](int64_t asked, int workers) {
    return fitting_mesh({PipelineOptions{.pipeline = asked}}, workers)
        .of<PipelineOptions>()
        .pipeline;
  };
  EXPECT_EQ(pipeline(1, 3), 1);
  EXPECT_EQ(pipeline(2, 4), 2);
  EXPECT_EQ(pipeline(2, 3), 3);
  EXPECT_EQ(pipeline(4, 3), 3);
  EXPECT_EQ(pipeline(4, 6), 6);
  EXPECT_EQ(pipeline(2, 1), 1);
  const auto tensor = [](int64_t asked, int64_t shards, int workers) {
    const StrategyOptions options =
        fitting_mesh({TensorOptions{.tensor = asked}, ShardsOptions{.shards = shards}}, workers);
    EXPECT_EQ(shards_of(options), shards > 0 ? shards : asked);
    return options.of<TensorOptions>().tensor;
  };
  EXPECT_EQ(tensor(2, 0, 4), 2);
  EXPECT_EQ(tensor(2, 0, 3), 1);
  EXPECT_EQ(tensor(4, 0, 6), 2);
  EXPECT_EQ(tensor(4, 12, 6), 3);
  EXPECT_EQ(tensor(4, 12, 1), 1);
}

struct MirroredMesh {
  std::string name;
  int workers = 3;
  StrategyOptions options;
};

std::vector<MirroredMesh> mirrored_meshes() {
  const MirrorOptions mirrors = {.mirror_every = 2};
  return {{"three stages", 3, {PipelineOptions{.pipeline = 3}, mirrors}},
          {"two stages", 2, {PipelineOptions{.pipeline = 2}, mirrors}},
          {"two pipelines", 4, {PipelineOptions{.pipeline = 2}, mirrors}},
          {"two pipelines in parts",
           4,
           {PipelineOptions{.pipeline = 2}, ShardingOptions{.sharding = "gradients"}, mirrors}},
          {"optimizer in parts", 3, {ShardingOptions{.sharding = "optimizer"}, mirrors}},
          {"weights in parts", 3, {ShardingOptions{.sharding = "weights"}, mirrors}},
          {"tensor groups", 4, {TensorOptions{.tensor = 2}, mirrors}}};
}

// The last worker is lost after step 5; its part is there as it was after an earlier step.
TEST(Mirrors, ALostPartChangesNoBit) {
  for (const MirroredMesh& mesh : mirrored_meshes()) {
    TrainingTask task =
        small_task(nn::sequential({nn::flatten(), nn::dense(40), nn::batch_norm(), nn::relu(),
                                   nn::dense(24), nn::relu(), nn::dense(3)}));
    task.options.optimizer = optim::adam(0.01);
    task.fit.epochs = 0;
    task.fit.steps = 9;
    TrainingTask undisturbed = task;
    undisturbed.options.strategy_options = {ShardsOptions{.shards = shards_of(mesh.options)}};
    Cluster one;
    Trainer alone_trainer(one, undisturbed.model, undisturbed.options);
    alone_trainer.fit(undisturbed.set, undisturbed.fit);
    const std::vector<float> expected = flat(alone_trainer.weights());
    task.options.strategy_options = mesh.options;
    std::atomic<int> reformed = 0;
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      const bool stays = rank + 1 < mesh.workers;
      std::vector<int> staying, steps;
      for (int other = 0; other + 1 < mesh.workers; ++other) staying.push_back(other);
      TrainingTask own = task;
      own.fit.after_step.push_back([&](const TrainingState& state) {
        steps.push_back(static_cast<int>(state.step));
        if (state.step == 5 && cluster.size() == mesh.workers) {
          if (!stays) {
            // Only after the others have finished the step and continued, because its end breaks
            // their group.
            for (const Deadline deadline = Deadline::after(20);
                 reformed + 1 < mesh.workers && !deadline.passed();)
              std::this_thread::yield();
            fail(ErrorKind::cancelled, "lost");
          }
          cluster.reform(staying);
          ++reformed;
        }
        return true;
      });
      Trainer trainer(cluster, own.model, own.options);
      if (!stays) {
        EXPECT_THROW(trainer.fit(own.set, own.fit), Error) << mesh.name;
        return;
      }
      const FitResult result = trainer.fit(own.set, own.fit);
      EXPECT_EQ(result.last.step, 9) << mesh.name;
      EXPECT_EQ(steps, (std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9})) << mesh.name;
      EXPECT_TRUE(same_bits(expected, flat(trainer.weights()))) << mesh.name << ", worker " << rank;
    });
  }
}

}  // namespace
}  // namespace artel
