#include "artel/exec/cpu/rows/cross_entropy.h"

#include "artel/base/error.h"
#include "tests/support/error_of.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

struct Oracle {
  double loss = 0;
  std::vector<double> gradient;
};

// From the definition: coefficients w * ((1 - smoothing) * target + smoothing / classes).
Oracle oracle(const CrossEntropyTarget& target, int64_t rows, int64_t classes,
              const std::vector<float>& logits) {
  Oracle o;
  o.gradient.resize(rows * classes);
  double weight = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (target.labels && target.labels[r] == target.ignore_index) continue;
    const auto class_weight = [&](int64_t c) {
      return target.class_weights ? target.class_weights[c] : 1.0;
    };
    weight += target.labels ? class_weight(target.labels[r]) : 1.0;
    double sum = 0, total = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits[r * classes + c]);
    const auto coefficient = [&](int64_t c) {
      const double t = target.labels ? target.labels[r] == c
                                     : static_cast<double>(target.probabilities[r * classes + c]);
      const double smoothing = target.label_smoothing;
      return class_weight(c) * ((1 - smoothing) * t + smoothing / static_cast<double>(classes));
    };
    for (int64_t c = 0; c < classes; ++c) {
      o.loss -= coefficient(c) * std::log(std::exp(logits[r * classes + c]) / sum);
      total += coefficient(c);
    }
    for (int64_t c = 0; c < classes; ++c)
      o.gradient[r * classes + c] =
          std::exp(logits[r * classes + c]) / sum * total - coefficient(c);
  }
  o.loss /= weight;
  for (double& g : o.gradient) g = weight > 0 ? g / weight : 0;
  return o;
}

TEST(CrossEntropy, AgainstDouble) {
  for (const int64_t rows : {1, 5, 130}) {
    for (const int64_t classes : {2, 10, 37, 1000}) {
      const std::vector<float> logits = random_values(rows * classes, 1, -5, 5),
                               weights = random_values(classes, 2, 0.5f, 2);
      std::vector<float> probabilities = random_values(rows * classes, 3, 0, 1);
      Random random{4};
      std::vector<int32_t> labels(rows);
      for (int64_t r = 0; r < rows; ++r) {
        labels[r] = r % 5 == 3 ? -100 : static_cast<int32_t>(random.below(classes));
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += probabilities[r * classes + c];
        for (int64_t c = 0; c < classes; ++c) probabilities[r * classes + c] /= sum;
      }
      for (int kind = 0; kind < 8; ++kind) {
        SCOPED_TRACE(kind);
        CrossEntropyTarget target;
        (kind & 1) ? void(target.probabilities = probabilities.data())
                   : void(target.labels = labels.data());
        if (kind & 2) target.class_weights = weights.data();
        if (kind & 4) target.label_smoothing = 0.1f;
        const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
          std::vector<float> result(1 + 2 * rows * classes), log_sums(2 * rows);
          cross_entropy(pool, target, rows, classes, logits.data(), result.data(), log_sums.data(),
                        result.data() + 1);
          const float dloss = 0.5f;
          cross_entropy_backward(pool, target, rows, classes, logits.data(), log_sums.data(),
                                 &dloss, result.data() + 1 + rows * classes);
          return result;
        });
        const Oracle o = oracle(target, rows, classes, logits);
        std::vector<double> expected = {o.loss};
        for (const double g : o.gradient) expected.push_back(g);
        for (const double g : o.gradient) expected.push_back(0.5 * g);
        expect_close(got, expected, 3e-6);
      }
    }
  }
}

TEST(CrossEntropy, NothingCounts) {
  ThreadPool pool(1);
  const std::vector<float> logits = {1, 2};
  const int32_t label = -100;
  float loss = 0, log_sums[2];
  std::vector<float> gradient(2, 9);
  cross_entropy(pool, {.labels = &label}, 1, 2, logits.data(), &loss, log_sums, gradient.data());
  EXPECT_TRUE(std::isnan(loss));
  EXPECT_EQ(gradient, std::vector<float>(2));
  cross_entropy(pool, {.labels = &label}, 0, 2, nullptr, &loss, nullptr, nullptr);
  EXPECT_TRUE(std::isnan(loss));
  // The mean over all rows is 0 then, and so is their weight.
  const float weight = cross_entropy(pool, {.labels = &label, .over_rows = true}, 1, 2,
                                     logits.data(), &loss, log_sums, gradient.data());
  EXPECT_EQ(loss, 0);
  EXPECT_EQ(weight, 0);
  EXPECT_EQ(gradient, std::vector<float>(2));
}

TEST(CrossEntropy, RejectsTargetsThatAreNotProbabilities) {
  ThreadPool pool(1);
  const std::vector<float> logits = {1, 2, 3, 4};
  float loss = 0, log_sums[4];
  const auto error_of = [&](const std::vector<float>& target) -> std::string {
    return artel::error_of([&] {
      cross_entropy(pool, {.probabilities = target.data()}, 2, 2, logits.data(), &loss, log_sums,
                    nullptr);
    });
  };
  EXPECT_EQ(error_of({0.25f, 0.75f, 1, 0}), "");
  EXPECT_EQ(error_of({0.25f, 0.75f, -3, 4}),
            "[cross_entropy] target of row 1: got 2 numbers from -3 to 4 with the sum 1, expected "
            "probabilities, which add up to 1; for other numbers try the loss \"mse\"");
  EXPECT_NE(error_of({0.25f, 0.25f, 1, 0}), "");
  EXPECT_NE(error_of({2, 3, 1, 0}), "");
}

TEST(CrossEntropy, RejectsWrongLabels) {
  ThreadPool pool(1);
  const std::vector<float> logits = {1, 2};
  float loss = 0, log_sums[2];
  for (const int32_t label : {-1, 2}) {
    EXPECT_THROW(
        cross_entropy(pool, {.labels = &label}, 1, 2, logits.data(), &loss, log_sums, nullptr),
        Error);
  }
}

}  // namespace
}  // namespace artel::kernels
