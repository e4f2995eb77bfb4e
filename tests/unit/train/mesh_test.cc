// On every mesh of data x pipeline x tensor, and with any sharding, the bits are those of one
// worker with the same numbers of lanes and shards.
#include <gtest/gtest.h>

#include "artel/train/parts/mesh_axes.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/tensor.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

struct MeshCase {
  int workers, pipeline, tensor;
  std::string sharding = "none", schedule = "auto";
};

constexpr int kShards = 4;

TrainingTask in_mesh(TrainingTask task, const MeshCase& mesh) {
  task.options.strategy_options = {
      PipelineOptions{.pipeline = mesh.pipeline, .schedule = mesh.schedule},
      TensorOptions{.tensor = mesh.tensor}, ShardsOptions{.shards = kShards},
      ShardingOptions{.sharding = mesh.sharding}};
  return task;
}

checkpoint::Checkpoint without_mesh(const TrainingTask& task) {
  Cluster one;
  return train_task(one, in_mesh(task, {1, 1, 1}));
}

std::string text_of(const MeshCase& mesh) {
  return fmt::format("{} workers, pipeline {}, tensor {}, sharding {}, {}", mesh.workers,
                     mesh.pipeline, mesh.tensor, mesh.sharding, mesh.schedule);
}

void expect_bits_on_meshes(const TrainingTask& task, const std::vector<MeshCase>& meshes) {
  const checkpoint::Checkpoint one = without_mesh(task);
  for (const MeshCase& mesh : meshes)
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      const checkpoint::Checkpoint got = train_task(cluster, in_mesh(task, mesh));
      EXPECT_TRUE(same_bits(flat(one.weights), flat(got.weights)))
          << "worker " << rank << ": " << text_of(mesh);
      EXPECT_TRUE(rank > 0 || same_bits(flat(one.optimizer), flat(got.optimizer))) << text_of(mesh);
    });
}

std::vector<MeshCase> all_meshes() {
  return {{2, 1, 1},
          {2, 2, 1},
          {2, 1, 2},
          {2, 1, 1, "weights"},
          {3, 3, 1},
          {4, 2, 2},
          {4, 2, 2, "none", "zero_bubble"},
          {4, 2, 1, "gradients", "gpipe"},
          {4, 1, 2, "optimizer"},
          {4, 1, 2, "weights"},
          {4, 1, 4},
          {4, 2, 2, "none", "interleaved"},
          {8, 2, 2, "none", "1f1b"},
          {8, 2, 2, "gradients"},
          {8, 2, 4}};
}

TrainingTask eight_lanes(TrainingTask task) {
  task.options.lanes = 8;
  task.fit.epochs = 1;
  return task;
}

TEST(Mesh, APerceptronHasTheBitsOfOneWorker) {
  TrainingTask task = eight_lanes(perceptron_task());
  task.options.optimizer = optim::lamb(0.01);
  task.options.optimizer.clip_norm = 0.2;
  expect_bits_on_meshes(task, all_meshes());
}

TEST(Mesh, ANetworkWithSkipsHasTheBitsOfOneWorker) {
  expect_bits_on_meshes(eight_lanes(convolutional_task()), all_meshes());
}

TEST(Mesh, ATransformerWithTiedWeightsHasTheBitsOfOneWorker) {
  expect_bits_on_meshes(eight_lanes(gpt_task()), all_meshes());
}

TEST(Mesh, NormsOfShardsAreThoseOfTheWholeParameter) {
  TrainingTask task = eight_lanes(gpt_task());
  for (const optim::OptimizerConfig& optimizer : {optim::lars(0.05), optim::lamb(0.01)}) {
    task.options.optimizer = optimizer;
    expect_bits_on_meshes(task,
                          {{2, 1, 2}, {4, 2, 2}, {4, 1, 2, "gradients"}, {2, 1, 1, "weights"}});
    // Sums have another order, so the bits differ, but no more than that.
    TrainingTask whole = in_mesh(task, {1, 1, 1});
    whole.options.strategy_options.of<ShardsOptions>().shards = 1;
    Cluster one;
    const std::vector<float> expected = flat(train_task(one, whole).weights);
    const std::vector<float> got = flat(without_mesh(task).weights);
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i)
      largest = std::max(largest, double{std::abs(got[i] - expected[i])});
    EXPECT_LT(largest, 1e-4);
  }
}

TEST(Mesh, ARunGoesOnInAnyOther) {
  const TrainingTask task = eight_lanes(gpt_task());
  const checkpoint::Checkpoint expected = without_mesh(task);
  TrainingTask part = task;
  part.fit.steps = 1;
  checkpoint::Checkpoint begun = without_mesh(part);
  for (const MeshCase& mesh :
       {MeshCase{4, 2, 2}, MeshCase{8, 2, 2, "gradients"}, MeshCase{4, 1, 2, "weights"}}) {
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, task.model, in_mesh(task, mesh).options);
      trainer.build({DType::i32, {6}});
      if (rank == 0) trainer.restore(begun);
      trainer.fit(task.set, task.fit);
      const checkpoint::Checkpoint got = trainer.checkpoint();
      EXPECT_TRUE(same_bits(flat(expected.weights), flat(got.weights))) << text_of(mesh);
      EXPECT_TRUE(rank > 0 || same_bits(flat(expected.optimizer), flat(got.optimizer)));
    });
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      const checkpoint::Checkpoint got = train_task(cluster, in_mesh(part, mesh));
      if (rank == 0) begun = got;
    });
  }
}

// Neighbours in a tensor group, then in a pipeline, lie on one machine, whatever the ranks are.
TEST(Mesh, PlacesFollowTheMachines) {
  const std::vector<MeshPlace> in_order = mesh_places({{0, 0, 0, 0, 1, 1, 1, 1}}, {2, 2});
  EXPECT_EQ(in_order[1], (MeshPlace{0, 0, 1}));
  EXPECT_EQ(in_order[2], (MeshPlace{0, 1, 0}));
  EXPECT_EQ(in_order[7], (MeshPlace{1, 1, 1}));
  const std::vector<int> hosts = {0, 1, 0, 1, 0, 1, 0, 1};
  const std::vector<MeshPlace> in_turn = mesh_places({hosts}, {2, 2});
  for (size_t i = 0; i < hosts.size(); ++i) EXPECT_EQ(in_turn[i].data, hosts[i]);
  const std::vector<MeshPlace> narrow = mesh_places({hosts}, {1, 4});
  for (size_t i = 0; i < hosts.size(); ++i) EXPECT_EQ(narrow[i].data, hosts[i]);
  const std::vector<MeshPlace> wide = mesh_places({{0, 1, 0, 1}}, {2, 2});
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(wide[i].stage, static_cast<int>(i % 2));
}

// A slow machine comes last, with all of its workers.
TEST(Mesh, SlowMachinesComeLast) {
  const MeshWorkers workers = {{0, 0, 1, 1, 2, 2}, {1, 1, 0.1, 0.1, 0.5, 1}};
  const std::vector<MeshPlace> places = mesh_places(workers, {3, 2});
  for (const int rank : {0, 1}) EXPECT_EQ(places[rank].stage, 0);
  for (const int rank : {2, 3}) EXPECT_EQ(places[rank].stage, 2);
  for (const int rank : {4, 5}) EXPECT_EQ(places[rank].stage, 1);
  EXPECT_EQ(stage_speeds(workers, {3, 2}), (std::vector<double>{1, 0.5, 0.1}));
  EXPECT_EQ(stage_speeds({{0, 1}}, {2, 1}), (std::vector<double>{1, 1}));
}

TEST(Mesh, WorkersKnowTheirPlaces) {
  on_workers(8, [&](int rank, Cluster& cluster) {
    const TrainingTask task = in_mesh(eight_lanes(perceptron_task()), {8, 2, 2});
    Trainer trainer(cluster, task.model, task.options);
    FitOptions fit = task.fit;
    fit.after_step.push_back([&](const TrainingState& state) {
      EXPECT_EQ(to_string(state.mesh),
                fmt::format("data {}, stage {}, tensor {}", rank / 4, rank / 2 % 2, rank % 2));
      return true;
    });
    trainer.fit(task.set, fit);
  });
}

TEST(Mesh, SaysWhichNumberToChange) {
  const auto message = [](int workers, const MeshCase& mesh) {
    std::string first;
    std::mutex mutex;
    EXPECT_THROW(on_workers(workers,
                            [&](int, Cluster& cluster) {
                              try {
                                train_task(cluster, in_mesh(eight_lanes(perceptron_task()), mesh));
                              } catch (const Error& error) {
                                const std::lock_guard lock(mutex);
                                first = error.what();
                                throw;
                              }
                            }),
                 Error);
    return first;
  };
  EXPECT_EQ(message(4, {4, 4, 2}),
            "cluster.pipeline: got 4 with cluster.tensor = 2 for 4 workers, expected numbers whose "
            "product divides them; try cluster.pipeline = 1 or 2, or -n 8");
  EXPECT_EQ(message(2, {2, 2, 1, "weights"}),
            "cluster.sharding: got \"weights\" with pipelines, expected \"none\"; try that, or "
            "\"gradients\"");
}

}  // namespace
}  // namespace artel
