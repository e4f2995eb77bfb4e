// Metrics of a fit: the same numbers on any number of workers, and what follows from them.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "artel/graph/ops.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// More sums than fit next to the loss in the usual place, and some that are not whole numbers.
TrainerOptions with_metrics(TrainerOptions options) {
  options.metrics = metrics_by_name({"accuracy", "perplexity", "confusion matrix", "f1", "top 5"});
  return options;
}

std::vector<std::vector<double>> seen_in(Trainer& trainer, int64_t batch) {
  std::vector<std::vector<double>> seen;
  const auto note = [&](const std::vector<MetricValue>& metrics) {
    for (const MetricValue& metric : metrics) seen.push_back(metric.sums);
  };
  FitOptions fit = {.batch_size = batch, .epochs = 2, .validation = samples()};
  fit.after_step.push_back([&](const TrainingState& state) {
    note(state.metrics);
    return true;
  });
  const FitResult result = trainer.fit(samples(), fit);
  for (const TrainingState& epoch : result.epochs) {
    note(epoch.metrics);
    note(epoch.test_metrics);
  }
  return seen;
}

TEST(FitMetrics, AreTheSameOnAnyNumberOfWorkers) {
  Cluster cluster;
  Trainer trainer(cluster, network(), with_metrics(trainer_options({})));
  const auto expected = seen_in(trainer, 13);
  ASSERT_EQ(expected.size(), 5u * (2 * 3 + 2 * 2));
  for (const int workers : {2, 3, 5})
    on_workers(workers, [&](int rank, Cluster& several) {
      Trainer one(several, network(), with_metrics(trainer_options({})));
      EXPECT_EQ(seen_in(one, 13), expected) << "worker " << rank << " of " << workers;
      EXPECT_TRUE(same_bits(flat(one.weights()), flat(trainer.weights())));
    });
  on_workers_and_servers(2, 2, [&](int, Cluster& several) {
    Trainer one(several, network(), with_metrics(trainer_options({.strategy = "ps"})));
    EXPECT_EQ(seen_in(one, 13), expected);
  });
}

// The share of pairs that are in order, by comparing all of them.
double plain_auc(std::span<const float> scores, std::span<const int32_t> labels) {
  double right = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t k = 0; k < scores.size(); ++k) {
      if (labels[i] != 1 || labels[k] != 0) continue;
      ++pairs;
      right += scores[i] > scores[k] ? 1 : scores[i] == scores[k] ? 0.5 : 0;
    }
  return pairs > 0 ? right / pairs : 0.5;
}

// A network that hands its input on and learns nothing, so that the scores of a batch are known.
double auc_of_a_step(Cluster& cluster, const Tensor& x, const Tensor& y, int lanes,
                     const std::string& strategy) {
  Trainer trainer(cluster, Model(nn::sequential({nn::dense(1)})),
                  {.optimizer = optim::sgd(0),
                   .loss = "binary_cross_entropy",
                   .metrics = metrics_by_name({"auc", "accuracy"}),
                   .threads = 1,
                   .lanes = lanes,
                   .strategy = strategy});
  trainer.build({DType::f32, {1}});
  if (cluster.rank() == 0)
    trainer.load_weights({{"0.weight", Tensor::from<float>({1, 1}, {1})},
                          {"0.bias", Tensor::from<float>({1}, {0})}});
  const FitResult result = trainer.fit(x, y, {.batch_size = x.shape()[0], .steps = 1});
  EXPECT_EQ(find_metric(result.last.metrics, "accuracy")->sums[1], x.shape()[0]);
  return find_metric(result.last.metrics, "auc")->value;
}

// However close the scores are, and on any division among workers.
TEST(FitMetrics, TheAreaUnderTheCurveOfABatchIsExact) {
  Random random{17};
  for (int trial = 0; trial < 8; ++trial) {
    const int64_t rows = 9 + static_cast<int64_t>(random.below(90));
    const float spread = trial % 2 == 0 ? 0.01f : 3.0f, mean = trial % 3 == 0 ? -6.0f : 0.5f;
    Tensor x({rows, 1}), y({rows, 1}), labels({rows}, DType::i32);
    for (int64_t i = 0; i < rows; ++i) {
      const auto label = static_cast<int32_t>(random.below(3) == 0);
      labels.values<int32_t>()[i] = label;
      y.values<float>()[i] = static_cast<float>(label);
      float score = mean + spread * (random.normal() + static_cast<float>(label));
      if (trial > 4) score = std::round(score);  // many are equal
      x.values<float>()[i] = score;
    }
    const double expected = plain_auc(x.values<float>(), labels.values<int32_t>());
    for (const int lanes : {1, 3, 8}) {
      Cluster cluster;
      EXPECT_EQ(auc_of_a_step(cluster, x, y, lanes, "auto"), expected) << trial;
    }
    for (const int workers : {2, 3})
      on_workers(workers, [&](int, Cluster& cluster) {
        EXPECT_EQ(auc_of_a_step(cluster, x, y, 5, trial % 2 ? "auto" : "ring"), expected) << trial;
      });
    on_workers_and_servers(2, 1, [&](int, Cluster& cluster) {
      EXPECT_EQ(auc_of_a_step(cluster, x, y, 5, "ps"), expected) << trial;
    });
  }
}

// They change nothing of what is trained.
TEST(FitMetrics, LeaveTheWeightsAlone) {
  for (const char* compress : {"", "int8"}) {
    std::mutex mutex;
    std::vector<std::vector<float>> weights;
    for (const bool more : {false, true})
      on_workers(2, [&](int rank, Cluster& cluster) {
        const TrainerOptions options = trainer_options({.compress = compress});
        Trainer trainer(cluster, network(), more ? with_metrics(options) : options);
        trainer.fit(samples(), {.batch_size = 13, .epochs = 2});
        const std::lock_guard lock(mutex);
        if (rank == 0) weights.push_back(flat(trainer.weights()));
      });
    EXPECT_TRUE(same_bits(weights[0], weights[1])) << compress;
  }
}

TEST(FitMetrics, OfLocalStepsCoverAllWorkers) {
  on_workers(2, [&](int, Cluster& cluster) {
    Trainer trainer(cluster, network(), with_metrics(trainer_options({.local_steps = 3})));
    const FitResult result = trainer.fit(samples(), {.batch_size = 20, .epochs = 1});
    const std::vector<double>& matrix = find_metric(result.last.metrics, "confusion matrix")->sums;
    double total = 0;
    for (const double count : matrix) total += count;
    EXPECT_EQ(total, 40);
    EXPECT_EQ(find_metric(result.last.metrics, "accuracy")->sums[1], 40);
  });
}

// Also those of an epoch that was interrupted.
TEST(FitMetrics, GoOnAfterAStop) {
  const auto run = [](bool stops) {
    Cluster cluster;
    Trainer trainer(cluster, network(), with_metrics(trainer_options({})));
    FitOptions fit = {.batch_size = 13, .epochs = 1};
    if (stops)
      fit.after_step.push_back([&](const TrainingState& state) { return state.step != 2; });
    FitResult result = trainer.fit(samples(), fit);
    if (stops) {
      EXPECT_EQ(result.stopped_by, "callback");
      Trainer other(cluster, network(), with_metrics(trainer_options({})));
      other.build({DType::f32, {1, 6, 6}});
      other.restore(trainer.checkpoint());
      result = other.fit(samples(), {.batch_size = 13, .epochs = 1});
    }
    std::vector<std::vector<double>> sums;
    for (const MetricValue& metric : result.last.metrics) sums.push_back(metric.sums);
    return sums;
  };
  EXPECT_EQ(run(true), run(false));
}

// Sums of other metrics are not added to, not even if they are as many.
TEST(FitMetrics, BeginAnewWhereAnEpochGoesOnWithOthers) {
  const auto sums_of = [](const std::string& before, const std::string& after) {
    Cluster cluster;
    TrainerOptions options = trainer_options({});
    options.metrics = metrics_by_name({before});
    Trainer trainer(cluster, network(), options);
    trainer.fit(samples(), {.batch_size = 13, .epochs = 1, .steps = 2});
    options.metrics = metrics_by_name({after});
    Trainer other(cluster, network(), options);
    other.build({DType::f32, {1, 6, 6}});
    other.restore(trainer.checkpoint());
    return other.fit(samples(), {.batch_size = 13, .epochs = 1}).last.metrics.at(0).sums;
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(sums_of("accuracy", "accuracy")[1], 3 * 13);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(sums_of("accuracy", "top 5")[1], 13);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("step 2: the epoch began with the metrics accuracy [2] and continues with "
                      "top 5 [2]"),
            std::string::npos)
      << said;
}

TEST(FitMetrics, AccuracyIsWhatIsReportedUnlessOthersAreAskedFor) {
  Cluster cluster;
  Trainer plain(cluster, network(), trainer_options({}));
  const FitResult result = plain.fit(samples(), {.batch_size = 20, .validation = samples()});
  ASSERT_EQ(result.last.metrics.size(), 1u);
  EXPECT_EQ(result.last.metrics[0].name, "accuracy");
  EXPECT_EQ(result.last.metrics[0].value, result.last.accuracy);
  EXPECT_EQ(result.last.test_metrics[0].value, result.last.test_accuracy);
  TrainerOptions others = trainer_options({});
  others.metrics = metrics_by_name({"top 5"});
  Trainer trainer(cluster, network(), others);
  const Evaluation evaluation = trainer.evaluate(samples());
  ASSERT_EQ(evaluation.metrics.size(), 1u);
  EXPECT_EQ(evaluation.metrics[0].value, 1) << "there are three classes";
  EXPECT_EQ(evaluation.accuracy, 0);
  try {
    trainer.fit(samples(), {.batch_size = 20, .validation = samples(), .target_accuracy = 0.5});
    FAIL() << "a target that nobody measures was accepted";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("target_accuracy: got 0.5, but"));
  }
}

// Sums for each row could not be added up over batches of different sizes.
TEST(FitMetrics, OfEachRowAreRefused) {
  Cluster cluster;
  TrainerOptions options = trainer_options({});
  options.metrics = {
      {.name = "rows", .sums = [](Value prediction, Value) { return sum(prediction, {1}); }}};
  for (const int64_t batch : {13, 16}) {  // lanes of different and of equal sizes
    Trainer trainer(cluster, network(), options);
    try {
      trainer.fit(samples(), {.batch_size = batch, .validation = samples()});
      FAIL() << "sums of each row were accepted";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("[metric 'rows'] got ")) << error.what();
    }
  }
}

TEST(FitMetrics, TheUsualAccuracyIsLeftOutWhereThereIsNone) {
  Tensor x({40, 1, 6, 6}), pairs({40, 2}, DType::i32);
  const data::DatasetPtr set = data::tensor_dataset(x, pairs);
  TrainerOptions options = trainer_options({});
  options.loss = Loss([](Value prediction, Value) { return mean(mul(prediction, prediction)); });
  Cluster cluster;
  Trainer trainer(cluster, network(), options);
  const FitResult result = trainer.fit(set, {.batch_size = 13, .validation = set});
  EXPECT_TRUE(result.last.metrics.empty());
  EXPECT_TRUE(trainer.evaluate(set).metrics.empty());
  options.metrics = metrics_by_name({"accuracy"});
  Trainer asked(cluster, network(), options);
  EXPECT_THROW(asked.fit(set, {.batch_size = 13}), Error);
}

TEST(FitMetrics, ALossCanBeAFunction) {
  Cluster cluster;
  const auto losses = [&](const LossChoice& loss) {
    TrainerOptions options = trainer_options({});
    options.loss = loss;
    Trainer trainer(cluster, network(), options);
    return trainer.fit(samples(), {.batch_size = 20, .epochs = 2}).last.loss;
  };
  const Loss twice = [](Value prediction, Value target) {
    return mul_scalar(cross_entropy(prediction, target), 2);
  };
  register_loss("twice", twice);
  EXPECT_EQ(losses(twice), losses("twice"));
  EXPECT_NE(losses(twice), losses("cross_entropy"));
  EXPECT_EQ(
      losses([](Value prediction, Value target) { return cross_entropy(prediction, target); }),
      losses("cross_entropy"));
}

}  // namespace
}  // namespace artel
