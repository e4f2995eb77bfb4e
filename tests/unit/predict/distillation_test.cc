// The loss of distillation against plain formulas.
#include "artel/nn/distillation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "artel/base/error.h"
#include "artel/exec/program.h"
#include "artel/nn/layers.h"
#include "artel/predict/predictor.h"
#include "tests/support/weights.h"

namespace artel::nn {
namespace {

constexpr int64_t kRows = 5, kClasses = 3;

std::vector<float> numbers(int64_t count, uint64_t seed) {
  Random random{seed};
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = 2 * random.normal();
  return values;
}

std::vector<double> plain_softmax(const float* scores, int64_t classes, double temperature) {
  std::vector<double> shares(static_cast<size_t>(classes));
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) sum += shares[i] = std::exp(scores[i] / temperature);
  for (double& share : shares) share /= sum;
  return shares;
}

struct Parts {
  double loss = 0, weight = 1;
};

// Runs a loss on scores, targets, and the teachers' outputs.
Parts computed(const std::string& name, const DistillationOptions& options, const Tensor& scores,
               const Tensor& targets, const Tensor& teacher) {
  Graph graph;
  const Value prediction = graph.input("x", {DType::f32, scores.shape()});
  const Value target = graph.input("y", {targets.dtype(), targets.shape()});
  const WeightedMean loss = distilled_loss(name, loss_by_name(name), options)(prediction, target);
  graph.set_output("loss", loss.weighted);
  if (loss.weight) graph.set_output("weight", loss.weight);
  const bool weighted = static_cast<bool>(loss.weight);
  KernelChoices choices;
  const Program program(std::move(graph), {}, choices);
  Parameters parameters(program.parameter_entries());
  Frame frame(program, parameters);
  frame.set_input("x", scores);
  frame.set_input("y", targets);
  frame.set_input(kTeacherInput, teacher);
  ThreadPool pool(1);
  program.run(frame, pool, {});
  return {frame.scalar("loss"), weighted ? frame.scalar("weight") : 1};
}

TEST(Distillation, ClassesLearnLabelsAndDivergence) {
  const std::vector<float> scores = numbers(kRows * kClasses, 1), given = numbers(kRows * 3, 2);
  const DistillationOptions options = {.temperature = 2.5, .weight = 0.7};
  std::vector<float> teacher;
  for (int64_t row = 0; row < kRows; ++row)
    for (const double share : plain_softmax(given.data() + row * kClasses, kClasses, 2.5))
      teacher.push_back(static_cast<float>(share));
  const std::vector<int32_t> labels = {0, 2, -100, 1, 1};
  double hard = 0, soft = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    if (labels[row] < 0) continue;
    const float* const own = scores.data() + row * kClasses;
    hard -= std::log(plain_softmax(own, kClasses, 1)[labels[row]]) / kRows;
    const std::vector<double> q = plain_softmax(own, kClasses, 2.5);
    for (int64_t i = 0; i < kClasses; ++i) {
      const double p = teacher[row * kClasses + i];
      soft += p * std::log(p / q[i]) / kRows;
    }
  }
  const Parts parts = computed(
      "cross_entropy", options, Tensor::from<float>({kRows, kClasses}, scores),
      Tensor::from<int32_t>({kRows}, labels), Tensor::from<float>({kRows, kClasses}, teacher));
  EXPECT_NEAR(parts.loss, 0.3 * hard + 0.7 * 2.5 * 2.5 * soft, 1e-5);
  EXPECT_NEAR(parts.weight, 4.0 / 5, 1e-6);
}

TEST(Distillation, TwoClassesLearnProbabilities) {
  const std::vector<float> scores = {1.5F, -2, 0.25F}, teacher = {0.9F, 0.2F, 0.5F};
  const std::vector<float> targets = {1, 0, 1};
  double hard = 0, soft = 0;
  const auto entropy = [](double score, double p) {
    return std::log1p(std::exp(score)) - score * p;
  };
  for (size_t i = 0; i < 3; ++i) {
    hard += entropy(scores[i], targets[i]) / 3;
    soft += entropy(scores[i] / 2, teacher[i]) / 3;
  }
  const Parts parts =
      computed("binary_cross_entropy", {.temperature = 2, .weight = 0.5},
               Tensor::from<float>({3, 1}, scores), Tensor::from<float>({3, 1}, targets),
               Tensor::from<float>({3, 1}, teacher));
  EXPECT_NEAR(parts.loss, 0.5 * hard + 0.5 * 4 * soft, 1e-5);
}

TEST(Distillation, ValuesLearnBothTargets) {
  const Parts parts =
      computed("mse", {.weight = 0.25}, Tensor::from<float>({2, 1}, {1, 2}),
               Tensor::from<float>({2, 1}, {0, 0}), Tensor::from<float>({2, 1}, {1, 0}));
  EXPECT_NEAR(parts.loss, 0.75 * 2.5 + 0.25 * 2, 1e-6);
}

TEST(Distillation, TeachersAreAveraged) {
  const TensorType sample = {DType::f32, {4}};
  const std::vector<Model> models = {dense(3), sequential({dense(6), relu(), dense(3)})};
  NamedTensors weights;
  std::vector<NamedTensors> each;
  for (size_t i = 0; i < models.size(); ++i) {
    each.push_back(tests::initial_weights(models[i], sample, i + 1));
    for (const NamedTensor& weight : each.back())
      weights.push_back({teacher_prefix(i) + "." + weight.name, weight.tensor});
  }
  const Tensor rows = Tensor::from<float>({2, 4}, numbers(8, 3));
  const Tensor mean = Predictor(softened_outputs(models, "cross_entropy", {.temperature = 3}),
                                sample, weights)(rows);
  for (int64_t row = 0; row < 2; ++row) {
    std::vector<double> expected(3);
    for (size_t i = 0; i < models.size(); ++i) {
      const Tensor scores = Predictor(models[i], sample, each[i])(rows);
      const auto shares = plain_softmax(scores.values<float>().data() + row * 3, 3, 3);
      for (size_t c = 0; c < 3; ++c) expected[c] += shares[c] / 2;
    }
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_NEAR(mean.values<float>()[row * 3 + c], expected[c], 1e-6);
  }
  EXPECT_THROW(Predictor(softened_outputs({models[0], dense(2)}, "mse", {}), sample, weights),
               Error);
  EXPECT_THROW(softened_outputs({}, "mse", {}), Error);
}

}  // namespace
}  // namespace artel::nn
