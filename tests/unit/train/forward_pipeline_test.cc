// Workers of which each has some layers evaluate and predict with the bits of one.
#include "artel/train/parts/forward_pipeline.h"

#include <gtest/gtest.h>

#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

struct StagedAnswers {
  double loss = 0, accuracy = 0;
  std::vector<float> scores;
  bool operator==(const StagedAnswers&) const = default;
};

StagedAnswers answers_of(Cluster& cluster, const TrainingTask& task, const NamedTensors& weights,
                         const Tensor& rows, bool divides) {
  Trainer trainer(cluster, task.model, task.options);
  std::vector<int64_t> sample(rows.shape().extents().begin() + 1, rows.shape().extents().end());
  trainer.build({rows.dtype(), Shape(sample)});
  trainer.load_weights(weights);
  if (divides) trainer.divide_for_predictions();
  const Evaluation tested = trainer.evaluate(task.set, {}, 16);
  const Tensor scores = trainer.predict(rows);
  return {
      tested.loss, tested.accuracy, {scores.values<float>().begin(), scores.values<float>().end()}};
}

void expect_the_same_answers(const TrainingTask& task, const Tensor& rows) {
  Cluster one;
  const NamedTensors weights = train_task(one, task).weights;
  const StagedAnswers expected = answers_of(one, task, weights, rows, false);
  for (const int workers : {2, 3})
    on_workers(workers, [&](int rank, Cluster& cluster) {
      EXPECT_EQ(answers_of(cluster, task, weights, rows, true), expected)
          << "worker " << rank << " of " << workers;
    });
}

TEST(ForwardPipeline, HasTheBitsOfOneWorker) {
  Random random{9};
  Tensor pictures({70, 1, 6, 6});
  for (float& v : pictures.values<float>()) v = random.normal();
  expect_the_same_answers(small_task(convolutional()), pictures);
  Tensor texts({5, 6}, DType::i32);
  for (int32_t& v : texts.values<int32_t>()) v = static_cast<int32_t>(random.below(11));
  expect_the_same_answers(text_task(), texts);
}

// Each worker fills only what it reads.
TEST(ForwardPipeline, NobodyHasTheWholeNetwork) {
  const TrainingTask task = small_task(perceptron());
  Cluster one;
  const NamedTensors weights = train_task(one, task).weights;
  on_workers(2, [&](int, Cluster& cluster) {
    Trainer trainer(cluster, task.model, task.options);
    trainer.build({DType::f32, {1, 6, 6}});
    trainer.load_weights(weights);
    trainer.divide_for_predictions();
    trainer.predict(Tensor({1, 1, 6, 6}));
    EXPECT_THROW(trainer.weights(), Error);
    EXPECT_THROW(trainer.fit(task.set, task.fit), Error);
  });
}

}  // namespace
}  // namespace artel
