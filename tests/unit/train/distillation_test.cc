// A student learns from a teacher: the same bits on any number of workers, and after a resume.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/predict/predictor.h"
#include "artel/train/step/teacher.h"
#include "artel/train/strategies/pipeline.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

// Deterministic weights, sharpened so that there is something to learn.
std::shared_ptr<Teacher> small_teacher(const nn::DistillationOptions& options = {}) {
  const Model model = nn::sequential({nn::flatten(), nn::dense(12), nn::relu(), nn::dense(3)});
  const TensorType sample = {DType::f32, {1, 6, 6}};
  NamedTensors weights;
  for (const NamedTensor& weight : tests::initial_weights(model, sample, 9))
    weights.push_back({nn::teacher_prefix(0) + "." + weight.name, weight.tensor});
  return std::make_shared<Teacher>(nn::softened_outputs({model}, "cross_entropy", options), sample,
                                   weights, options);
}

std::vector<float> distilled(Cluster& cluster, TrainingTask task, bool kept = false) {
  task.options.teacher = small_teacher({.temperature = 2, .weight = 0.5});
  if (kept) task.options.teacher->keep(*task.set, {}, "distillation_test", 1);
  return flat(train_task(cluster, task).weights);
}

std::vector<float> distilled_alone(const TrainingTask& task, bool kept = false) {
  Cluster one;
  return distilled(one, task, kept);
}

TEST(DistilledTraining, WorkersGiveTheBitsOfOne) {
  for (const bool kept : {false, true}) {
    TrainingTask task = small_task(convolutional());
    task.fit.batch_size = 13;  // unequal lanes
    const std::vector<float> expected = distilled_alone(task, kept);
    Cluster one;
    EXPECT_FALSE(same_bits(expected, flat(train_task(one, task).weights)));
    for (const int workers : {2, 3})
      on_workers(workers, [&](int, Cluster& cluster) {
        EXPECT_TRUE(same_bits(distilled(cluster, task, kept), expected)) << workers;
      });
    task.options.threads = 2;
    EXPECT_TRUE(same_bits(distilled_alone(task, kept), expected));
  }
}

TEST(DistilledTraining, PipelinesGiveTheBitsOfOne) {
  TrainingTask task = small_task(perceptron());
  const std::vector<float> expected = distilled_alone(task);
  task.options.strategy_options.of<PipelineOptions>().pipeline = 2;
  on_workers(2, [&](int, Cluster& cluster) {
    EXPECT_TRUE(same_bits(distilled(cluster, task), expected));
  });
}

TEST(DistilledTraining, AResumedRunGivesTheSameBits) {
  const TrainingTask task = small_task(perceptron());
  const std::vector<float> expected = distilled_alone(task);
  const TemporaryFolder folder;
  TrainingTask half = task;
  half.fit.checkpoints = folder / "checkpoints";
  half.fit.steps = 3;
  half.fit.epochs = 0;
  distilled_alone(half);
  TrainingTask rest = task;
  rest.fit.checkpoints = half.fit.checkpoints;
  rest.fit.resume = true;
  EXPECT_TRUE(same_bits(distilled_alone(rest), expected));
}

TEST(DistilledTraining, AnotherTeacherIsNoticed) {
  on_workers(2, [&](int rank, Cluster& cluster) {
    TrainingTask task = small_task(perceptron());
    task.options.teacher = small_teacher({.temperature = rank == 0 ? 2.0 : 3.0});
    try {
      train_task(cluster, task);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("teacher"), std::string::npos) << error.what();
    }
  });
}

TEST(DistilledTraining, ClassWeightsAreRefused) {
  TrainingTask task = small_task(perceptron());
  task.options.class_weights = {1, 2, 3};
  EXPECT_THROW(distilled_alone(task), Error);
}

// With all of the loss from the teacher, the student comes to give its outputs.
TEST(DistilledTraining, TheStudentApproachesItsTeacher) {
  TrainingTask task =
      small_task(nn::sequential({nn::flatten(), nn::dense(24), nn::relu(), nn::dense(3)}));
  const nn::DistillationOptions options = {.temperature = 1, .weight = 1};
  task.options.teacher = small_teacher(options);
  task.options.optimizer = optim::adam(0.01);
  task.fit.epochs = 60;
  Cluster cluster;
  Trainer trainer(cluster, task.model, task.options);
  trainer.fit(task.set, task.fit);
  data::Batch batch = {.x = Tensor({8, 1, 6, 6}), .total = 8};
  std::vector<std::byte> target(4);
  for (int64_t i = 0; i < 8; ++i) task.set->read(i, {batch.x.raw() + i * 36 * 4, 36 * 4}, target);
  ThreadPool pool(1);
  const Tensor expected = task.options.teacher->outputs(batch, 1, {0, 1}, pool);
  const Tensor scores = trainer.predict(batch.x);
  for (int64_t row = 0; row < 8; ++row) {
    double sum = 0;
    for (int64_t c = 0; c < 3; ++c) sum += std::exp(scores.values<float>()[row * 3 + c]);
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_NEAR(std::exp(scores.values<float>()[row * 3 + c]) / sum,
                  expected.values<float>()[row * 3 + c], 0.03);
  }
}

}  // namespace
}  // namespace artel
