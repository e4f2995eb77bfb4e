// Forecasts of meshes: what is possible, what fits, and what is worth it.
#include "artel/train/parts/mesh_forecast.h"

#include <gtest/gtest.h>

#include "artel/nn/layers.h"
#include "artel/nn/model.h"
#include "artel/plan/graph_costs.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/mesh_choice.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

// Wide layers: little computation compared with the bytes of gradients.
MeshQuestion wide_question(int workers) {
  static const Model model =
      nn::sequential({nn::dense(1024), nn::relu(), nn::dense(1024), nn::relu(), nn::dense(1024),
                      nn::relu(), nn::dense(1024), nn::relu(), nn::dense(16)});
  return {.workers = workers,
          .lanes = 8,
          .slots = 2,
          .graph =
              [](const ShardPart& part) {
                return training_graph(model, {DType::f32, {4, 1024}}, {DType::i32, {4}},
                                      loss_by_name("cross_entropy"), {}, {}, part)
                    .graph;
              },
          .seconds = plan::estimated_node_seconds};
}

const MeshForecast& find_mesh(const std::vector<MeshForecast>& meshes, int pipeline, int tensor,
                              const std::string& sharding = "none") {
  for (const MeshForecast& mesh : meshes)
    if (mesh.size == MeshSize{pipeline, tensor} && mesh.sharding == sharding) return mesh;
  throw std::runtime_error("no such mesh");
}

TEST(MeshForecast, HasEveryMeshThatIsPossible) {
  MeshQuestion question = wide_question(4);
  const auto count = [&] { return forecast_meshes(question).size(); };
  // Data 4 with four shardings, 2 x 2 with three, and a pipeline of 4.
  EXPECT_EQ(count(), 4u + 3u + 1u);
  question.shards = 2;  // also data 2 x tensor 2 with four, and pipeline 2 x tensor 2
  EXPECT_EQ(count(), 8u + 4u + 1u);
  question.sharding = "none";
  EXPECT_EQ(count(), 3u + 2u);
  question.lanes = 2;  // fewer than stages and copies
  EXPECT_EQ(count(), 1u + 1u);
}

TEST(MeshForecast, MemoryFollowsTheParts) {
  MeshQuestion question = wide_question(2);
  question.shards = 2;
  const std::vector<MeshForecast> two = forecast_meshes(question);
  const double whole = find_mesh(two, 1, 1).memory - kProgramBytes;
  double before = whole;
  for (const char* sharding : {"optimizer", "gradients", "weights"}) {
    const double memory = find_mesh(two, 1, 1, sharding).memory - kProgramBytes;
    EXPECT_LT(memory, before) << sharding;
    before = memory;
  }
  // Sums of single lanes wait for their neighbours in a pipeline; alone, lanes share one sum.
  EXPECT_LT(find_mesh(two, 2, 1).memory - kProgramBytes, 0.9 * whole);
  EXPECT_LT(find_mesh(two, 1, 2).memory - kProgramBytes, 0.75 * whole);
}

TEST(MeshForecast, ASlowWireFavoursPipelines) {
  MeshQuestion question = wide_question(2);
  question.hosts = {0, 1};
  question.links.between = {1e-5, 1e7};
  std::vector<MeshForecast> meshes = forecast_meshes(question);
  EXPECT_EQ(best_mesh(meshes, 0)->size, (MeshSize{2, 1}));
  EXPECT_NE(
      reasons_for(*best_mesh(meshes, 0), meshes, 0).find("data 2 x pipeline 1 x tensor 1 would be"),
      std::string::npos);
  question.links.between = {1e-9, 1e13};
  meshes = forecast_meshes(question);
  EXPECT_EQ(best_mesh(meshes, 0)->size, (MeshSize{1, 1}));
}

// Lanes follow the speed of workers, down to one for each; a slow stage is a short one.
TEST(MeshForecast, CountsOnTheSpeedsOfWorkers) {
  MeshQuestion question = wide_question(3);
  question.hosts = {0, 1, 2};
  question.links.between = {1e-9, 1e13};
  question.lanes = 12;
  const std::vector<MeshForecast> equal = forecast_meshes(question);
  question.speeds = {1, 1, 0.5};
  const std::vector<MeshForecast> half = forecast_meshes(question);
  // Five lanes, and two on the slow worker, instead of four each; only where lanes can move.
  EXPECT_GT(find_mesh(half, 1, 1).seconds, 1.1 * find_mesh(equal, 1, 1).seconds);
  EXPECT_LT(find_mesh(half, 1, 1).seconds, 1.25 * find_mesh(equal, 1, 1).seconds);
  EXPECT_GT(find_mesh(half, 1, 1, "weights").seconds,
            1.7 * find_mesh(equal, 1, 1, "weights").seconds);
  EXPECT_LT(find_mesh(half, 3, 1).seconds, 1.5 * find_mesh(equal, 3, 1).seconds);
  // A worker that needs longer for one lane than the others for all of theirs.
  question.speeds = {1, 1, 0.02};
  const std::vector<MeshForecast> slow = forecast_meshes(question);
  EXPECT_GT(find_mesh(slow, 1, 1).seconds, 8 * find_mesh(equal, 1, 1).seconds);
  EXPECT_LT(find_mesh(slow, 3, 1).seconds, 3 * find_mesh(equal, 3, 1).seconds);
  EXPECT_EQ(best_mesh(slow, 0)->size, (MeshSize{3, 1}));
}

TEST(MeshForecast, OnlyWhatFitsIsChosen) {
  const MeshQuestion question = wide_question(4);
  const std::vector<MeshForecast> meshes = forecast_meshes(question);
  double least = meshes[0].memory;
  for (const MeshForecast& mesh : meshes) least = std::min(least, mesh.memory);
  EXPECT_DOUBLE_EQ(best_mesh(meshes, least)->memory, least);
  EXPECT_FALSE(best_mesh(meshes, least / 2).has_value());
}

// Copies of parts count where there are parts, and a mesh with room for them comes first.
TEST(MeshForecast, CopiesOfPartsAreCounted) {
  MeshQuestion question = wide_question(4);
  for (const MeshForecast& mesh : forecast_meshes(question)) EXPECT_EQ(mesh.mirrors, 0);
  question.mirrors = true;
  const std::vector<MeshForecast> meshes = forecast_meshes(question);
  EXPECT_EQ(find_mesh(meshes, 1, 1).mirrors, 0);  // all have all of it
  const double weights = (4 * 1024 * (1024 + 1) + 16 * (1024 + 1)) * sizeof(float);
  // Weights and two optimizer values per parameter: a quarter each of its own and of another
  // worker's, twice.
  EXPECT_NEAR(find_mesh(meshes, 1, 1, "optimizer").mirrors, 4 * 3 * weights / 4, 1e4);
  // The other pipeline has the same stage: nothing is sent.
  EXPECT_GT(find_mesh(meshes, 2, 1).mirrors, 2 * 3 * weights / 2);
  EXPECT_LT(find_mesh(meshes, 2, 1).mirrors, 2 * 3 * weights);
  const MeshForecast fastest = {.seconds = 1, .memory = 100, .mirrors = 40},
                     safe = {.size = {2, 1}, .seconds = 2, .memory = 60, .mirrors = 20};
  EXPECT_EQ(best_mesh({fastest, safe}, 0)->seconds, 1);
  EXPECT_EQ(best_mesh({fastest, safe}, 160)->seconds, 1);
  EXPECT_EQ(best_mesh({fastest, safe}, 130)->seconds, 2);  // no room for the copies of the first
  EXPECT_EQ(best_mesh({fastest, safe}, 70)->seconds, 2);   // nor for those of the second
  EXPECT_NE(reasons_for(safe, {safe}, 70).find("without the 20 B of copies of parts"),
            std::string::npos)
      << reasons_for(safe, {safe}, 70);
}

TEST(MeshForecast, SaysWhatWouldFit) {
  MeshQuestion question = wide_question(1);
  const double one = forecast_meshes(question)[0].memory;
  question.memory = kProgramBytes + 0.95 * (one - kProgramBytes);
  const std::string advice = suggest_fit(question);
  EXPECT_EQ(advice.substr(0, 18), "-n 2 with cluster.") << advice;
  question.memory = 1;
  EXPECT_EQ(suggest_fit(question).substr(0, 13), "workers with ") << suggest_fit(question);
}

// Whatever is chosen gives the bits of one worker; a network without room is refused by all.
TEST(MeshForecast, TheChoiceIsTrainedIn) {
  TrainingTask task = perceptron_task();
  task.fit.epochs = 1;
  Cluster one;
  const std::vector<float> expected = flat(train_task(one, task).weights);
  task.options.strategy_options = {MeshOptions{.mesh = "auto"}};
  on_workers(4, [&](int, Cluster& cluster) {
    EXPECT_TRUE(same_bits(expected, flat(train_task(cluster, task).weights)));
  });
  task.options.worker_memory = 1 << 20;
  EXPECT_THROW(train_task(one, task), Error);
  on_workers(2, [&](int, Cluster& cluster) { EXPECT_THROW(train_task(cluster, task), Error); });
}

}  // namespace
}  // namespace artel
