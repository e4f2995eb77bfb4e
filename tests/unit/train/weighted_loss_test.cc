// Samples that do not count equally in the loss: ignored labels, class weights, masks. The loss and
// its gradient are those of the whole batch, for any number of lanes and workers.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "artel/graph/ops.h"
#include "artel/train/strategies/options.h"
#include "tests/unit/train/tasks.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

constexpr int64_t kLines = 24, kLength = 6, kTokens = 11;

// Lines of 1 to kLength tokens, the shorter ones first, so that lanes differ.
data::DatasetPtr uneven_lines() {
  Tensor x({kLines, kLength}, DType::i32), y({kLines, kLength}, DType::i32);
  Random random{5};
  for (int64_t line = 0; line < kLines; ++line)
    for (int64_t i = 0; i < kLength; ++i) {
      const auto at = static_cast<size_t>(line * kLength + i);
      x.values<int32_t>()[at] = static_cast<int32_t>(random.below(kTokens));
      y.values<int32_t>()[at] = i * kLines > line * kLength
                                    ? data::kIgnoredTarget
                                    : static_cast<int32_t>(random.below(kTokens));
    }
  return data::tensor_dataset(x, y, kTokens);
}

TrainingTask line_task() {
  TrainingTask task = text_task();
  task.model =
      nn::gpt2({.vocabulary = kTokens, .positions = kLength, .width = 8, .depth = 2, .heads = 2});
  task.set = task.fit.validation = uneven_lines();
  return task;
}

// A class that occurs once in five, and a weight for each.
TrainingTask class_task() {
  TrainingTask task = small_task(perceptron());
  task.options.class_weights = {0.2, 1, 7};
  return task;
}

struct LaneOutcome {
  double loss = 0, test_loss = 0;
  std::vector<float> weights;
};

LaneOutcome train_with_lanes(TrainingTask task, int lanes) {
  task.options.lanes = lanes;
  Cluster one;
  Trainer trainer(one, task.model, task.options);
  const FitResult result = trainer.fit(task.set, task.fit);
  return {result.last.loss, result.last.test_loss, flat(trainer.weights())};
}

void expect_same_for_all_lanes(const TrainingTask& task) {
  const LaneOutcome one = train_with_lanes(task, 1);
  for (const int lanes : {2, 3, 8, 16}) {
    const LaneOutcome other = train_with_lanes(task, lanes);
    EXPECT_NEAR(one.loss, other.loss, 1e-5 * one.loss) << lanes;
    EXPECT_NEAR(one.test_loss, other.test_loss, 1e-5 * one.test_loss) << lanes;
    double largest = 0;
    for (size_t i = 0; i < one.weights.size(); ++i)
      largest = std::max(largest, double{std::fabs(one.weights[i] - other.weights[i])});
    EXPECT_LT(largest, 2e-5) << lanes;
  }
}

TEST(WeightedLoss, IgnoredLabelsCountInNoLane) {
  TrainingTask task = line_task();
  task.options.optimizer = optim::sgd(0.5);
  expect_same_for_all_lanes(task);
  task.options.optimizer.clip_norm = 0.1;
  expect_same_for_all_lanes(task);
}

TEST(WeightedLoss, ClassWeightsAreThoseOfTheWholeBatch) { expect_same_for_all_lanes(class_task()); }

// The sum over all rows of the batch, divided by the weights, as PyTorch has it.
TEST(WeightedLoss, IsTheWeightedMean) {
  constexpr int64_t kRows = 12;
  Tensor x({kRows, 2}), y({kRows}, DType::i32);
  Random random{3};
  for (float& v : x.values<float>()) v = random.normal();
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(3));
  const std::vector<double> weights = {0.5, 2, 5};
  Cluster one;
  Trainer trainer(one, nn::sequential({nn::dense(3)}),
                  {.optimizer = optim::sgd(1), .class_weights = weights, .threads = 1, .lanes = 5});
  trainer.build({DType::f32, {2}});
  const NamedTensors before = trainer.weights();
  const auto at = [&](size_t tensor, int64_t i) {
    return double{before[tensor].tensor.values<float>()[static_cast<size_t>(i)]};
  };
  const size_t bias = before[0].tensor.shape().rank() == 1 ? 0 : 1, matrix = 1 - bias;
  double loss = 0, total = 0;
  std::vector<double> gradient(3);
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<double> p(3);
    for (int64_t c = 0; c < 3; ++c) {
      p[c] = at(bias, c);
      for (int64_t k = 0; k < 2; ++k)
        p[c] += at(matrix, c * 2 + k) * x.values<float>()[static_cast<size_t>(row * 2 + k)];
      p[c] = std::exp(p[c]);
    }
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    const auto label = static_cast<size_t>(y.values<int32_t>()[static_cast<size_t>(row)]);
    loss -= weights[label] * std::log(p[label] / sum);
    total += weights[label];
    for (size_t c = 0; c < 3; ++c)
      gradient[c] += weights[label] * (p[c] / sum - (c == label ? 1 : 0));
  }
  const FitResult result =
      trainer.fit(data::tensor_dataset(x, y, 3), {.batch_size = kRows, .epochs = 1});
  EXPECT_NEAR(result.last.loss, loss / total, 1e-5);
  for (int64_t c = 0; c < 3; ++c)
    EXPECT_NEAR(trainer.weights()[bias].tensor.values<float>()[static_cast<size_t>(c)],
                at(bias, c) - gradient[static_cast<size_t>(c)] / total, 1e-5);
}

void expect_weighted_bits(const TrainingTask& task, int workers, int servers,
                          const std::string& what) {
  Cluster one;
  TrainingTask alone = task;
  alone.options.strategy = "auto";
  const int shards = task.options.strategy_options.of<ShardsOptions>().shards;
  alone.options.strategy_options = {ShardsOptions{.shards = shards}};
  const checkpoint::Checkpoint expected = train_task(one, alone);
  on_workers_and_servers(workers, servers, [&](int rank, Cluster& cluster) {
    const checkpoint::Checkpoint got = train_task(cluster, task);
    EXPECT_TRUE(same_bits(flat(expected.weights), flat(got.weights)))
        << "worker " << rank << " of " << workers << ": " << what;
  });
}

TEST(WeightedLoss, HasTheBitsOfOneWorkerOnSeveral) {
  for (TrainingTask task : {line_task(), class_task()}) {
    for (const double clip : {0.0, 0.2}) {
      task.options.optimizer.clip_norm = clip;
      task.options.strategy_options = {};
      expect_weighted_bits(task, 3, 0, "data");
      for (const char* sharding : {"optimizer", "weights"}) {
        task.options.strategy_options = {ShardingOptions{.sharding = sharding}};
        expect_weighted_bits(task, 2, 0, sharding);
      }
      task.options.strategy_options = {PipelineOptions{.pipeline = 2}};
      expect_weighted_bits(task, 4, 0, "pipeline");
      task.options.strategy_options = {};
      task.options.strategy = "ps";
      expect_weighted_bits(task, 3, 2, "servers");
      task.options.strategy = "auto";
    }
  }
}

TEST(WeightedLoss, HasTheBitsOfOneWorkerInTensorGroups) {
  TrainingTask task = gpt_task();
  task.set = task.fit.validation = uneven_lines();
  task.options.strategy_options = {TensorOptions{.tensor = 2}, ShardsOptions{.shards = 2}};
  expect_weighted_bits(task, 2, 0, "tensor");
  task.options.strategy_options = {PipelineOptions{.pipeline = 2}, TensorOptions{.tensor = 2},
                                   ShardsOptions{.shards = 2}};
  expect_weighted_bits(task, 4, 0, "pipeline and tensor");
}

// The gradient of the bias is 1 whichever rows count, so each step moves it by the learning rate.
constexpr double kConstantRate = 1.0 / 64;

TrainingTask constant_task() {
  Tensor x({32, 1}), y({32});
  for (size_t i = 0; i < 32; ++i) y.values<float>()[i] = i % 4 == 0 ? 0.0f : 1.0f;
  TrainingTask task = small_task(nn::sequential({nn::dense(1)}));
  task.set = data::tensor_dataset(x, y);
  task.fit = {.batch_size = 16, .epochs = 3};
  task.options.optimizer = optim::sgd(kConstantRate);
  task.options.loss = Loss([](Value prediction, Value target) {
    const Value mask = reshape(target, prediction.shape());
    return WeightedMean(mean(mul(mask, prediction)), mean(mask));
  });
  return task;
}

double steps_moved(Cluster& cluster, const TrainingTask& task) {
  Trainer trainer(cluster, task.model, task.options);
  trainer.build({DType::f32, {1}});
  const auto bias = [&] {
    double value = 0;
    for (const NamedTensor& weight : trainer.weights())
      if (weight.tensor.shape().rank() == 1) value = weight.tensor.values<float>()[0];
    return value;
  };
  const double before = bias();
  trainer.fit(task.set, task.fit);
  return (before - bias()) / kConstantRate;
}

TEST(WeightedLoss, EveryStepMovesByTheLearningRate) {
  const auto expect_steps = [&](const TrainingTask& task, int workers, int servers, double steps,
                                const std::string& what) {
    on_workers_and_servers(workers, servers, [&](int rank, Cluster& cluster) {
      const double found = steps_moved(cluster, task);
      if (rank == 0) {
        EXPECT_NEAR(found, steps, 0.01) << what;
      }
    });
  };
  TrainingTask task = constant_task();
  expect_steps(task, 1, 0, 6, "one worker");
  expect_steps(task, 3, 0, 6, "three workers");
  task.options.strategy_options = {LocalStepsOptions{.local_steps = 2}};
  expect_steps(task, 3, 0, 6, "local steps");
  for (const char* codec : {"fp16", "int8"}) {
    task.options.strategy_options = {PackingOptions{.compress = codec}};
    expect_steps(task, 2, 0, 6, codec);
  }
  task.options.strategy = "ps";
  task.options.strategy_options = {};
  expect_steps(task, 2, 1, 6, "servers");
  task.options.strategy_options = {DelayOptions{.delay = 2}};
  expect_steps(task, 2, 1, 6, "servers with delay");
}

// Batches without a label that counts change nothing; a whole epoch of them is an error.
TEST(WeightedLoss, NeedsSomethingThatCounts) {
  TrainingTask task = constant_task();
  Tensor x({32, 1}), y({32});
  for (size_t i = 0; i < 3; ++i) y.values<float>()[i] = 1;
  task.set = data::tensor_dataset(x, y);
  task.fit.batch_size = 8;
  Cluster one;
  EXPECT_LT(steps_moved(one, task), 12.5);
  task.set = data::tensor_dataset(x, Tensor({32}));
  try {
    steps_moved(one, task);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("none of 32 samples has a usable label"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace artel
