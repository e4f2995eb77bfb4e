// The strategy "ddpg" in the common loop: callbacks, tests, criteria and checkpoints as of any
// other.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/data/tables/libsvm.h"
#include "artel/data/tables/sparse_sample_maker.h"
#include "artel/nn/zoo/classic.h"
#include "artel/predict/linear.h"
#include "artel/train/strategies/delayed_proximal.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

class SparseLinearTest : public testing::Test {
 protected:
  SparseLinearTest() {
    data::make_sparse_samples(folder_ / "rows",
                              {.rows = 400, .features = 300, .nonzeros = 12, .informative = 40});
    split_ = data::libsvm(folder_ / "rows", {}, 0.25, 3);
    options_.strategy_options.of<DelayedProximalOptions>() = {.l1 = 0.2, .blocks = 6};
  }

  // The final result of worker 0.
  struct Outcome {
    FitResult result;
    NamedTensors weights;
    Evaluation test;
  };
  Outcome train(int workers, FitOptions fit) const {
    Outcome outcome;
    if (!fit.validation) fit.validation = split_.test;
    on_workers_and_servers(workers, 1, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, nn::linear(2), options_);
      const FitResult result = trainer.fit(split_.train, fit);
      EXPECT_GT(std::abs(trainer.parameters().get("bias").values<float>()[0]), 0) << rank;
      if (rank > 0) return;
      outcome.result = result;
      outcome.weights = trainer.weights();
      Cluster here;
      Trainer copy(here, nn::linear(2), options_);
      copy.build({DType::f32, split_.train->layout().input});
      copy.load_weights(outcome.weights);
      outcome.test = copy.evaluate(split_.test);
    });
    return outcome;
  }

  TemporaryFolder folder_;
  data::Split split_;
  TrainerOptions options_ = {.threads = 1, .strategy = "ddpg"};
};

TEST_F(SparseLinearTest, IsTestedAndReportedLikeAnyOther) {
  std::vector<int64_t> steps, epochs;
  FitOptions fit = {.epochs = 12};
  fit.after_step.push_back([&](const TrainingState& state) {
    steps.push_back(state.step);
    EXPECT_EQ(state.measures.size(), 2u);
    return true;
  });
  fit.after_epoch.push_back([&](const TrainingState& state) {
    epochs.push_back(state.epoch);
    return true;
  });
  const Outcome outcome = train(1, fit);
  EXPECT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps, epochs);
  EXPECT_EQ(outcome.result.stopped_by, "epochs");
  EXPECT_TRUE(outcome.result.last.tested);
  EXPECT_EQ(outcome.result.last.test_loss, outcome.test.loss);
  EXPECT_EQ(outcome.result.last.test_accuracy, outcome.test.accuracy);
  EXPECT_LT(outcome.result.last.loss, 0.67);
  EXPECT_GT(outcome.result.servers.nonzeros, 0);
}

TEST_F(SparseLinearTest, DenseAndSparseRowsGiveTheSame) {
  const Outcome outcome = train(2, {.epochs = 10});
  Cluster cluster;
  Trainer trainer(cluster, nn::linear(2), options_);
  const data::SampleLayout& layout = split_.test->layout();
  trainer.build({DType::f32, layout.input});
  trainer.load_weights(outcome.weights);
  Tensor x({split_.test->size(), layout.input[0]}), y({split_.test->size()}, DType::i32);
  for (int64_t i = 0; i < split_.test->size(); ++i)
    split_.test->read(
        i, std::as_writable_bytes(x.values<float>().subspan(i * layout.input[0], layout.input[0])),
        std::as_writable_bytes(y.values<int32_t>().subspan(i, 1)));
  const Evaluation dense = trainer.evaluate(data::tensor_dataset(x, y, 2));
  EXPECT_NEAR(dense.loss, outcome.test.loss, 1e-5);
  EXPECT_EQ(dense.correct, outcome.test.correct);
  EXPECT_EQ(trainer.predict(x).shape(), (Shape{split_.test->size(), 2}));
}

TEST_F(SparseLinearTest, AllWorkersStopByWhatOneSees) {
  const Outcome aimed = train(2, {.epochs = 500, .target_accuracy = 0.51});
  EXPECT_EQ(aimed.result.stopped_by, "target accuracy");
  EXPECT_LT(aimed.result.last.step, 500);
  FitOptions fit = {.epochs = 500};
  fit.after_epoch.push_back([](const TrainingState& state) { return state.epoch < 3; });
  const Outcome called = train(2, fit);
  EXPECT_EQ(called.result.stopped_by, "callback");
  EXPECT_EQ(called.result.last.step, 5);  // the wish travels with pass 4, which all know after 5
}

TEST_F(SparseLinearTest, StopsWhenTheObjectiveHasSettled) {
  options_.strategy_options.of<DelayedProximalOptions>().tolerance = 0.02;
  const Outcome outcome = train(2, {.epochs = 500});
  EXPECT_EQ(outcome.result.stopped_by, "tolerance");
  EXPECT_LT(outcome.result.last.step, 500);
}

TEST_F(SparseLinearTest, GoesOnFromACheckpoint) {
  const auto run = [&](const std::string& name, int64_t epochs) {
    return train(1, {.epochs = epochs, .checkpoints = folder_ / name, .resume = true});
  };
  const Outcome whole = run("whole", 8);
  run("parts", 3);
  const Outcome parts = run("parts", 8);
  EXPECT_EQ(parts.result.last.step, 8);
  EXPECT_NEAR(parts.test.loss, whole.test.loss, 1e-5);
  // Nothing is left to do.
  EXPECT_TRUE(same_bits(flat(run("parts", 8).weights), flat(parts.weights)));
}

// The servers update by their own rule, so there are no moments to keep or to continue with.
TEST_F(SparseLinearTest, HasNoOptimizerState) {
  options_.optimizer = optim::adam(0.01);
  TrainerOptions dense = options_;
  dense.strategy = "auto";
  Cluster here;
  Trainer other(here, nn::linear(2), dense);
  other.fit(split_.train, {.batch_size = 100, .steps = 1});
  const checkpoint::Checkpoint moments = other.checkpoint();
  EXPECT_EQ(moments.optimizer.size(), 4u);  // two of the weights, two of the bias
  on_workers_and_servers(1, 1, [&](int, Cluster& cluster) {
    Trainer trainer(cluster, nn::linear(2), options_);
    trainer.fit(split_.train, {.epochs = 2});
    EXPECT_EQ(trainer.checkpoint().optimizer.size(), 0u);
  });
  on_workers_and_servers(1, 1, [&](int, Cluster& cluster) {
    Trainer trainer(cluster, nn::linear(2), options_);
    trainer.build({DType::f32, split_.train->layout().input});
    trainer.restore(moments);
    trainer.fit(split_.train, {.epochs = 2});
    EXPECT_EQ(trainer.checkpoint().step, 2);
    EXPECT_EQ(trainer.checkpoint().optimizer.size(), 0u);
  });
}

}  // namespace
}  // namespace artel
