// Workers that share layers have the bits of one worker with as many shards, which computes what
// one without shards does.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/graph/op.h"
#include "artel/graph/passes/split_layers.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/tensor.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

struct TensorMesh {
  int workers, tensor, shards;
};

TrainingTask shared_by(TrainingTask task, const TensorMesh& mesh) {
  task.options.strategy_options = {TensorOptions{.tensor = mesh.tensor},
                                   ShardsOptions{.shards = mesh.shards}};
  return task;
}

checkpoint::Checkpoint by_one(const TrainingTask& task, int shards) {
  Cluster one;
  return train_task(one, shared_by(task, {1, 1, shards}));
}

void expect_bits_of_one(const TrainingTask& task, const std::vector<TensorMesh>& meshes) {
  std::map<int, checkpoint::Checkpoint> expected;
  for (const TensorMesh& mesh : meshes) {
    if (!expected.contains(mesh.shards)) expected[mesh.shards] = by_one(task, mesh.shards);
    const checkpoint::Checkpoint& one = expected[mesh.shards];
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      const checkpoint::Checkpoint got = train_task(cluster, shared_by(task, mesh));
      EXPECT_TRUE(same_bits(flat(one.weights), flat(got.weights)))
          << "worker " << rank << " of " << mesh.workers << " in groups of " << mesh.tensor << ", "
          << mesh.shards << " shards";
      EXPECT_TRUE(rank > 0 || same_bits(flat(one.optimizer), flat(got.optimizer)))
          << mesh.workers << " workers in groups of " << mesh.tensor;
    });
  }
}

TEST(Tensor, GivesTheBitsOfOneWorker) {
  const std::vector<TensorMesh> meshes = {{2, 2, 2}, {2, 2, 4}, {4, 4, 4},
                                          {4, 2, 4}, {2, 1, 4}, {3, 3, 3}};
  expect_bits_of_one(perceptron_task(), meshes);
}

TEST(Tensor, CutsConvolutionsAndTheirStatistics) {
  expect_bits_of_one(convolutional_task(), {{2, 2, 4}, {4, 2, 2}});
}

TEST(Tensor, CutsTransformersAndTheirVocabulary) {
  expect_bits_of_one(gpt_task(), {{2, 2, 4}, {4, 4, 4}, {4, 2, 2}});
}

TEST(Tensor, LanesRunSideBySideAndMayBeUnequal) {
  TrainingTask task = perceptron_task();
  task.options.threads = 2;
  task.options.lanes = 5;
  task.fit.batch_size = 18;
  task.fit.keep_last_batch = true;
  expect_bits_of_one(task, {{2, 2, 2}, {4, 2, 4}});
}

TEST(Tensor, ShardsGoTogetherWithSharding) {
  TrainingTask task = perceptron_task();
  const checkpoint::Checkpoint one = by_one(task, 4);
  for (const char* level : {"optimizer", "weights"}) {
    TrainingTask sharded = shared_by(task, {2, 1, 4});
    sharded.options.strategy_options.of<ShardingOptions>().sharding = level;
    on_workers(2, [&](int, Cluster& cluster) {
      EXPECT_TRUE(same_bits(flat(one.weights), flat(train_task(cluster, sharded).weights)));
    });
  }
}

// Sums have another order, so the bits differ; masks of dropout are the same.
TEST(Tensor, ComputesWhatWholeLayersDo) {
  for (TrainingTask task : {perceptron_task(), gpt_task()}) {
    task.options.optimizer = optim::sgd(0.05);
    task.fit.epochs = 1;
    const std::vector<float> whole = flat(by_one(task, 1).weights);
    const std::vector<float> cut = flat(by_one(task, 4).weights);
    ASSERT_EQ(whole.size(), cut.size());
    EXPECT_FALSE(same_bits(whole, cut));
    double largest = 0;
    for (size_t i = 0; i < whole.size(); ++i)
      largest = std::max(largest, double{std::abs(whole[i] - cut[i])});
    EXPECT_LT(largest, 1e-5);
  }
}

TEST(Tensor, AllStopAndTraceWhenOneWishesTo) {
  for (const TensorMesh& mesh : {TensorMesh{2, 2, 2}, TensorMesh{4, 2, 2}}) {
    std::vector<int64_t> steps(static_cast<size_t>(mesh.workers));
    std::vector<StepTrace> traces;
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      const TrainingTask task = shared_by(perceptron_task(), mesh);
      Trainer trainer(cluster, task.model, task.options);
      FitOptions fit = {.batch_size = 16, .epochs = 50};
      fit.after_step.push_back([&](const TrainingState& state) {
        EXPECT_EQ(state.mesh.tensor, rank % 2);
        EXPECT_EQ(state.mesh.data, mesh.workers > 2 ? rank / 2 : -1);
        if (rank == 0 && state.step == 1) trainer.request_trace(2);
        return rank != mesh.workers - 1 || state.step < 6;
      });
      fit.after_trace = [&](StepTrace trace) { traces.push_back(std::move(trace)); };
      steps[static_cast<size_t>(rank)] = trainer.fit(task.set, fit).last.step;
    });
    EXPECT_EQ(steps, std::vector<int64_t>(steps.size(), 7));
    ASSERT_EQ(traces.size(), 1u);
    EXPECT_EQ(traces[0].steps, 2);
  }
}

TEST(Tensor, ARunGoesOnWithAnyOther) {
  const TrainingTask task = gpt_task();
  const checkpoint::Checkpoint expected = by_one(task, 4);
  TrainingTask half = task;
  half.fit.epochs = 1;
  checkpoint::Checkpoint begun = by_one(half, 4);
  for (const TensorMesh& mesh : {TensorMesh{2, 2, 4}, TensorMesh{4, 2, 4}}) {
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, task.model, shared_by(task, mesh).options);
      trainer.build({DType::i32, {6}});
      if (rank == 0) trainer.restore(begun);
      trainer.fit(task.set, task.fit);
      const checkpoint::Checkpoint got = trainer.checkpoint();
      EXPECT_TRUE(same_bits(flat(expected.weights), flat(got.weights))) << mesh.workers;
      EXPECT_TRUE(rank > 0 || same_bits(flat(expected.optimizer), flat(got.optimizer)));
    });
    on_workers(mesh.workers, [&](int rank, Cluster& cluster) {
      const checkpoint::Checkpoint got = train_task(cluster, shared_by(half, mesh));
      if (rank == 0) begun = got;
    });
  }
}

Graph step_of(const TrainingTask& task, const TensorType& x, const TensorType& y,
              const ShardPart& part) {
  return training_graph(task.model, x, y, loss_by_name("cross_entropy"), {}, {}, part).graph;
}

int count(const Graph& graph, std::string_view op, Direction direction) {
  int found = 0;
  for (const Node& node : graph.nodes())
    found += node.op->name == op &&
             (node.direction == Direction::forward) == (direction == Direction::forward);
  return found;
}

// Two for each of two blocks, and one for the table of tokens.
TEST(Tensor, ABlockOfATransformerHasTwoSums) {
  const TensorType tokens = {DType::i32, {2, 6}};
  const Graph graph = step_of(gpt_task(), tokens, tokens, {4, 2, 4});
  EXPECT_EQ(count(graph, "shard_sum", Direction::forward), 2 * 2 + 1);
  EXPECT_EQ(count(graph, "shard_sum", Direction::backward), 2 * 2 + 1);
  EXPECT_EQ(count(graph, "shard_gather", Direction::forward), 0);
  EXPECT_EQ(count(graph, "shard_gather", Direction::backward), 0);
  EXPECT_TRUE(whole_layers(graph).empty());
}

TEST(Tensor, LayersTooSmallStayWholeAndAreNamed) {
  const Graph graph =
      step_of(perceptron_task(), {DType::f32, {2, 1, 6, 6}}, {DType::i32, {2}}, ShardPart::all(4));
  EXPECT_TRUE(whole_layers(graph).empty());  // the last one is cut by rows
  const Graph more =
      step_of(perceptron_task(), {DType::f32, {2, 1, 6, 6}}, {DType::i32, {2}}, ShardPart::all(6));
  EXPECT_EQ(whole_layers(more), (std::vector<std::string>{"6", "8"}));  // of 64 and 3 columns
}

void expect_refused(const TrainingTask& task, int workers, const std::string& expected) {
  std::vector<std::string> messages(static_cast<size_t>(workers));
  EXPECT_THROW(on_workers(workers,
                          [&](int rank, Cluster& cluster) {
                            try {
                              train_task(cluster, task);
                            } catch (const Error& error) {
                              messages[static_cast<size_t>(rank)] = error.what();
                              throw;
                            }
                          }),
               Error);
  for (const std::string& message : messages)
    EXPECT_NE(message.find(expected), std::string::npos) << message;
}

TEST(Tensor, SaysWhichNumberToChange) {
  const TrainingTask task = perceptron_task();
  expect_refused(shared_by(task, {3, 2, 2}), 3,
                 "cluster.tensor: got 2 for 3 workers, expected a number that divides them; try 1 "
                 "or 3");
  expect_refused(shared_by(task, {2, 2, 3}), 2,
                 "cluster.shards: got 3 for cluster.tensor = 2, expected a multiple of it; try 4");
  expect_refused(shared_by(gpt_task(), {2, 2, 6}), 2,
                 "attention: got 4 heads for cluster.shards = 6, expected a multiple of it; try "
                 "cluster.shards = 1 or 2 or 4");
  Cluster one;
  EXPECT_THROW(train_task(one, shared_by(task, {1, 2, 2})), Error);
}

}  // namespace
}  // namespace artel
