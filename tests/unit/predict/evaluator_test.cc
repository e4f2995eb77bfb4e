#include "artel/predict/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/graph/ops.h"
#include "tests/support/error_of.h"

namespace artel {
namespace {

// A network whose output is its input.
Model echo() {
  return nn::Layer("echo", [](nn::Build&, Value x) { return x; });
}

TensorType sample_of(const Tensor& rows) {
  const std::vector<int64_t>& all = rows.shape().extents();
  return {rows.dtype(), Shape(std::vector<int64_t>(all.begin() + 1, all.end()))};
}

std::vector<MetricValue> measured(const Tensor& x, const Tensor& y,
                                  const std::vector<Metric>& metrics,
                                  const std::string& loss = "cross_entropy", int threads = 1) {
  Parameters parameters;
  KernelChoices choices;
  Evaluator evaluator(echo(), sample_of(x), sample_of(y), loss_by_name(loss), parameters, choices,
                      threads, metrics);
  const Evaluator::Sums sums = evaluator.evaluate(x, y);
  return evaluator.metrics().values(sums.metrics, sums.rows);
}

double value_of(const std::vector<MetricValue>& values, std::string_view name) {
  const MetricValue* found = find_metric(values, name);
  return found && found->single ? found->value : NAN;
}

// Five rows of three classes: right, a tie that the first class wins, ignored, right, wrong.
const Tensor kScores = Tensor::from<float>({5, 3}, {1, 2, 0, 3, 3, 1, 0, 1, 5, 0, 1, 5, 2, 1, 0});
const Tensor kLabels = Tensor::from<int32_t>({5}, {1, 1, -100, 2, 2});

TEST(Metrics, OfASmallTable) {
  std::vector<Metric> wanted =
      metrics_by_name({"accuracy", "precision", "recall", "f1", "perplexity", "confusion matrix"});
  wanted.push_back(top_k(2));
  const std::vector<MetricValue> values = measured(kScores, kLabels, wanted);
  EXPECT_EQ(find_metric(values, "accuracy")->sums, (std::vector<double>{2, 4}));
  EXPECT_DOUBLE_EQ(value_of(values, "accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(value_of(values, "top 2"), 0.75);
  EXPECT_DOUBLE_EQ(value_of(values, "precision"), (0.0 + 1 + 1) / 3);
  EXPECT_DOUBLE_EQ(value_of(values, "recall"), (0 + 0.5 + 0.5) / 3);
  EXPECT_DOUBLE_EQ(value_of(values, "f1"), (0 + 2.0 / 3 + 2.0 / 3) / 3);
  const MetricValue* matrix = find_metric(values, "confusion matrix");
  EXPECT_FALSE(matrix->single);
  EXPECT_EQ(matrix->shape, (Shape{3, 3}));
  EXPECT_EQ(matrix->sums, (std::vector<double>{0, 0, 0, 1, 1, 0, 1, 0, 1}));
  double entropy = 0;
  for (const int row : {0, 1, 3, 4}) {
    const float* scores = kScores.values<float>().data() + 3 * row;
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += std::exp(double{scores[c]});
    entropy += std::log(sum) - scores[kLabels.values<int32_t>()[static_cast<size_t>(row)]];
  }
  EXPECT_NEAR(value_of(values, "perplexity"), std::exp(entropy / 4), 1e-5);
}

// A text has a label for each position.
TEST(Metrics, OfEveryPosition) {
  Tensor scores({1, 5, 3}), labels({1, 5}, DType::i32);
  std::copy_n(kScores.raw(), kScores.bytes(), scores.raw());
  std::copy_n(kLabels.raw(), kLabels.bytes(), labels.raw());
  const std::vector<std::string> names = {"accuracy", "f1", "perplexity", "confusion matrix"};
  const auto flat = measured(kScores, kLabels, metrics_by_name(names));
  const auto text = measured(scores, labels, metrics_by_name(names));
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(flat[i].sums, text[i].sums) << names[i];
}

// One score a row is that of class 1: above 0 it is the answer.
TEST(Metrics, OfOneScoreARow) {
  const Tensor scores = Tensor::from<float>({6, 1}, {2, 0.5, -1, -3, 0, 4});
  const Tensor labels = Tensor::from<int32_t>({6}, {1, 0, 0, 1, 0, 1});
  Tensor numbers({6});
  for (size_t i = 0; i < 6; ++i)
    numbers.values<float>()[i] = static_cast<float>(labels.values<int32_t>()[i]);
  for (const Tensor& targets : {labels, numbers}) {
    const std::vector<MetricValue> values =
        measured(scores, targets, metrics_by_name({"accuracy", "precision", "recall", "f1"}),
                 "binary_cross_entropy");
    EXPECT_DOUBLE_EQ(value_of(values, "accuracy"), 4.0 / 6);
    EXPECT_DOUBLE_EQ(value_of(values, "precision"), 2.0 / 3);
    EXPECT_DOUBLE_EQ(value_of(values, "recall"), 2.0 / 3);
    EXPECT_DOUBLE_EQ(value_of(values, "f1"), 2.0 / 3);
  }
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
  return right / pairs;
}

TEST(Metrics, AreaUnderTheCurve) {
  constexpr int64_t kRows = 2000;
  Tensor one({kRows, 1}), two({kRows, 2}), labels({kRows}, DType::i32);
  Random random({5, hash_name("auc")});
  for (const double spread : {0.3, 3.0, 100.0}) {
    for (const bool few : {false, true}) {  // few different scores: many are equal
      for (int64_t i = 0; i < kRows; ++i) {
        const int32_t label = random.below(30) == 0;
        auto score = static_cast<float>(spread * (random.normal() + 1.5 * label - 2));
        if (few) score = std::round(score);
        labels.values<int32_t>()[i] = label;
        one.values<float>()[i] = score;
        two.values<float>()[2 * i] = 1;
        two.values<float>()[2 * i + 1] = score + 1;
      }
      const double expected = plain_auc(one.values<float>(), labels.values<int32_t>());
      const auto single = measured(one, labels, metrics_by_name({"auc"}), "binary_cross_entropy");
      EXPECT_NEAR(value_of(single, "auc"), expected, 1e-12) << spread << few;
      // Rounding makes some scores equal.
      EXPECT_NEAR(value_of(measured(two, labels, metrics_by_name({"auc"})), "auc"), expected, 1e-5);
    }
  }
  std::fill_n(labels.values<int32_t>().begin(), kRows, 0);
  EXPECT_EQ(value_of(measured(two, labels, metrics_by_name({"auc"})), "auc"), 0.5);
  EXPECT_THROW(measured(kScores, kLabels, metrics_by_name({"auc"})), Error);
}

TEST(Metrics, OfEachClass) {
  const std::vector<MetricValue> values =
      measured(kScores, kLabels, metrics_by_name({"per class"}));
  const std::vector<ClassScores> classes = class_scores(values[0]);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_DOUBLE_EQ(classes[0].precision, 0);
  EXPECT_DOUBLE_EQ(classes[1].precision, 1);
  EXPECT_DOUBLE_EQ(classes[1].recall, 0.5);
  EXPECT_DOUBLE_EQ(classes[1].f1, 2.0 / 3);
  EXPECT_EQ(classes[1].labels, 2);
}

// The weighted mean, as a plain loop has it.
TEST(Loss, ClassWeights) {
  constexpr int64_t kRows = 50, kClasses = 3;
  const std::vector<double> weights = {0.5, 2, 7};
  Tensor scores({kRows, kClasses}), labels({kRows}, DType::i32);
  Random random({5, hash_name("weights")});
  for (float& score : scores.values<float>()) score = random.normal();
  double expected = 0, total = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    const auto label = static_cast<int32_t>(random.below(kClasses));
    labels.values<int32_t>()[i] = label;
    double sum = 0;
    for (int64_t c = 0; c < kClasses; ++c)
      sum += std::exp(double{scores.values<float>()[3 * i + c]});
    expected += weights[static_cast<size_t>(label)] *
                (std::log(sum) - scores.values<float>()[3 * i + label]);
    total += weights[static_cast<size_t>(label)];
  }
  expected /= total;
  const auto loss_of = [](const Tensor& x, const Tensor& y, const std::string& name,
                          const std::vector<double>& class_weights) {
    Parameters parameters;
    KernelChoices choices;
    Evaluator evaluator(echo(), sample_of(x), sample_of(y),
                        make_loss(name, {.class_weights = class_weights}), parameters, choices, 1);
    const Evaluator::Sums sums = evaluator.evaluate(x, y);
    return sums.loss / sums.weight;
  };
  EXPECT_NEAR(loss_of(scores, labels, "cross_entropy", weights), expected, 1e-5);
  // Two classes: one score for class 1, or two scores.
  Tensor one({kRows, 1}), two({kRows, 2});
  for (int64_t i = 0; i < kRows; ++i) {
    labels.values<int32_t>()[i] = static_cast<int32_t>(random.below(2));
    one.values<float>()[i] = two.values<float>()[2 * i + 1] = random.normal();
    two.values<float>()[2 * i] = 0;
  }
  EXPECT_NEAR(loss_of(one, labels, "binary_cross_entropy", {0.5, 7}),
              loss_of(two, labels, "cross_entropy", {0.5, 7}), 1e-5);
  EXPECT_THROW(make_loss("mse", {.class_weights = {1, 2}}), Error);
}

TEST(Metrics, OfValues) {
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  const Tensor y = Tensor::from<float>({2, 2}, {1, 0, 4, 8});
  const auto values = measured(x, y, metrics_by_name({"mean absolute error"}), "mse");
  EXPECT_DOUBLE_EQ(value_of(values, "mean absolute error"), 7.0 / 4);
}

// Scores in a narrow range, far from 0.
TEST(Metrics, AreaUnderTheCurveOfCloseScores) {
  constexpr int64_t kRows = 1000;
  Tensor scores({kRows, 1}), labels({kRows}, DType::i32);
  Random random({6, hash_name("auc")});
  for (int64_t i = 0; i < kRows; ++i) {
    const int32_t label = random.below(3) == 0;
    labels.values<int32_t>()[i] = label;
    scores.values<float>()[i] = -6 + 0.01f * (random.normal() + static_cast<float>(label));
  }
  const double expected = plain_auc(scores.values<float>(), labels.values<int32_t>());
  const auto values = measured(scores, labels, metrics_by_name({"auc"}), "binary_cross_entropy");
  EXPECT_NEAR(value_of(values, "auc"), expected, 1e-12);
  scores.values<float>()[7] = NAN;
  EXPECT_TRUE(std::isnan(
      value_of(measured(scores, labels, metrics_by_name({"auc"}), "binary_cross_entropy"), "auc")));
}

// Metrics of values against plain loops in double precision, where sums of floats would cancel out.
TEST(Metrics, OfValuesWithALargeMean) {
  constexpr int64_t kRows = 3000;
  struct Targets {
    double mean, deviation;
  };
  for (const auto& [mean, deviation] : {Targets{1e4, 1},
                                        {1e5, 10},
                                        {-3e6, 2},
                                        {1.6e7, 3},
                                        {0, 1e-18},
                                        {1e-12, 1e-15},
                                        {1e18, 1e15},
                                        {0, 1}}) {
    Tensor x({kRows, 1}), y({kRows, 1});
    Random random({7, hash_name("r2")});
    for (int64_t i = 0; i < kRows; ++i) {
      const double z = random.normal();
      y.values<float>()[i] = static_cast<float>(mean + deviation * z);
      x.values<float>()[i] = static_cast<float>(mean + deviation * (z + 0.5 * random.normal()));
    }
    long double total = 0, squares = 0, errors = 0, distances = 0;
    for (const float t : y.values<float>()) total += t;
    for (int64_t i = 0; i < kRows; ++i) {
      const long double t = y.values<float>()[i], p = x.values<float>()[i];
      squares += (t - total / kRows) * (t - total / kRows);
      errors += (p - t) * (p - t);
      distances += std::fabs(p - t);
    }
    const auto values = measured(
        x, y, metrics_by_name({"r2", "root mean squared error", "mean absolute error"}), "mse");
    const auto near = [&](const char* name, long double expected) {
      EXPECT_NEAR(value_of(values, name), static_cast<double>(expected),
                  1e-5 * std::fabs(static_cast<double>(expected)))
          << name << " of " << mean << " +- " << deviation;
    };
    near("r2", 1 - errors / squares);
    near("root mean squared error", std::sqrt(errors / kRows));
    near("mean absolute error", distances / kRows);
  }
}

// 200 rows are several chunks, the last of them smaller.
TEST(Metrics, DoNotDependOnThreads) {
  constexpr int64_t kRows = 200, kClasses = 7;
  Tensor x({kRows, kClasses}), y({kRows}, DType::i32);
  Random random{8};
  for (float& v : x.values<float>()) v = static_cast<float>(random.below(5));  // with ties
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(kClasses));
  int64_t right = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const float* first = x.values<float>().data() + row * kClasses;
    right += std::max_element(first, first + kClasses) - first ==
             y.values<int32_t>()[static_cast<size_t>(row)];
  }
  const std::vector<Metric> wanted = metrics_by_name({"accuracy", "top 5", "perplexity", "f1"});
  const auto one = measured(x, y, wanted), three = measured(x, y, wanted, "cross_entropy", 3);
  EXPECT_EQ(one[0].sums, (std::vector<double>{static_cast<double>(right), kRows}));
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(one[i].sums, three[i].sums);
}

TEST(Metrics, SayWhatIsWrong) {
  EXPECT_TRUE(artel::error_of([] {
                metric_by_name("acuracy");
              }).starts_with("unknown metric 'acuracy'; did you mean 'accuracy'?; known: "));
  EXPECT_EQ(artel::error_of([] {
              measured(kScores, kLabels, metrics_by_name({"f1", "f1"}));
            }),
            "[metric 'f1'] is asked for twice, expected once");
  EXPECT_EQ(artel::error_of([] { register_metric(top_k(5)); }),
            "metric 'top 5' comes with Artel; try another name");
  const Loss any = [](Value prediction, Value) { return mean(prediction); };
  EXPECT_EQ(artel::error_of([&] {
              evaluation_graph(echo(), {DType::f32, {5, 3}}, {DType::f32, {5, 2}}, any,
                               metrics_by_name({"accuracy"}));
            }),
            "[metric 'accuracy'] got targets f32[5, 2] for the network's output [5, 3], expected "
            "a class for each row of scores");
}

// Predicted minus true, on the average.
TEST(Metrics, AreMadeByUsers) {
  register_metric({.name = "bias",
                   .sums =
                       [](Value prediction, Value target) {
                         const Value off = sub(prediction, target);
                         return metric_sums(sum(off), off.shape().elements());
                       },
                   .value = ratio});
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  const Tensor y = Tensor::from<float>({2, 2}, {1, 0, 4, 8});
  const auto values = measured(x, y, metrics_by_name({"bias"}), "mse");
  EXPECT_DOUBLE_EQ(value_of(values, "bias"), -3.0 / 4);
}

TEST(Evaluator, AddsLossesOfSamplesUp) {
  const Tensor x = Tensor::from<float>({3, 1}, {1, 2, 3}),
               y = Tensor::from<float>({3, 1}, {0, 0, 0});
  Parameters parameters;
  KernelChoices choices;
  Evaluator evaluator(echo(), sample_of(x), sample_of(y), loss_by_name("mse"), parameters, choices,
                      1);
  const Evaluator::Sums sums = evaluator.evaluate(x, y);
  EXPECT_EQ(sums.samples, 3);
  EXPECT_NEAR(sums.loss, 1 + 4 + 9, 1e-5);
  EXPECT_TRUE(sums.metrics.empty());
  const Tensor same = evaluator.predict(x);
  EXPECT_TRUE(
      std::equal(x.values<float>().begin(), x.values<float>().end(), same.values<float>().begin()));
}

}  // namespace
}  // namespace artel
