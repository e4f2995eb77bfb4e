// Reports, criteria, and errors of a fit.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/data/loader.h"
#include "artel/train/strategies/downpour.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(Fit, LabelSmoothingIsNoPartOfTheTestLoss) {
  Cluster cluster;
  const auto losses = [&](double smoothing) {
    Trainer trainer(cluster, network(),
                    {.optimizer = optim::sgd(0), .label_smoothing = smoothing, .seed = 4});
    const FitResult result =
        trainer.fit(samples(), {.batch_size = 20, .epochs = 1, .validation = samples()});
    EXPECT_EQ(result.last.test_loss, trainer.evaluate(samples()).loss);
    return std::pair{result.last.loss, result.last.test_loss};
  };
  const auto [plain, plain_test] = losses(0);
  const auto [smooth, smooth_test] = losses(0.3);
  EXPECT_NE(plain, smooth);
  EXPECT_EQ(plain_test, smooth_test);
}

// For a mixture, the class with the larger share is the correct answer.
TEST(Fit, CountsRightAnswersOfMixtures) {
  Cluster cluster;
  const Model model = nn::sequential({nn::flatten(), nn::dense(3)});
  Trainer trainer(cluster, model, {.optimizer = optim::sgd(0), .seed = 4, .lanes = 3});
  const data::Augmentation mixing = data::Augmentation::parse({"mixup 0.4"});
  data::Loader loader(samples(),
                      {.sampling = {.batch_size = 20, .seed = 4}, .augmentation = mixing});
  std::vector<double> expected, seen;
  trainer.build({DType::f32, {1, 6, 6}});
  for (int step = 0; step < 4; ++step) {
    const data::Batch batch = loader.next().value();
    const Tensor outputs = trainer.predict(batch.x);
    int64_t right = 0;
    for (int64_t i = 0; i < 20; ++i) {
      const float *p = outputs.values<float>().data() + 3 * i,
                  *share = batch.y.values<float>().data() + 3 * i;
      right += std::max_element(p, p + 3) - p == std::max_element(share, share + 3) - share;
    }
    expected.push_back(static_cast<double>(right) / 20);
  }
  FitOptions fit = {.batch_size = 20, .epochs = 2, .augment = mixing};
  fit.after_step.push_back([&](const TrainingState& state) {
    seen.push_back(state.accuracy);
    return true;
  });
  const FitResult result = trainer.fit(samples(), fit);
  EXPECT_EQ(seen, expected);
  EXPECT_DOUBLE_EQ(result.last.accuracy, (expected[2] + expected[3]) / 2);
}

// The accuracy of the test data, if that is what is to be maximised, else their loss.
TEST(Fit, PlateausWatchWhatTheySay) {
  for (const bool maximize : {false, true})
    for (const bool tested : {false, true}) {
      const optim::Plateau plateau = {.factor = 0.5, .patience = 0, .maximize = maximize};
      Cluster cluster;
      Trainer trainer(cluster, network(),
                      {.optimizer = optim::sgd(0.3), .schedule = {.shape = plateau}, .seed = 4});
      const FitResult result = trainer.fit(
          samples(),
          {.batch_size = 20, .epochs = 40, .validation = tested ? samples() : data::DatasetPtr()});
      optim::PlateauReducer reducer(plateau);
      for (const TrainingState& epoch : result.epochs) {
        EXPECT_DOUBLE_EQ(epoch.learning_rate, 0.3 * reducer.factor());
        reducer.observe(maximize ? (tested ? epoch.test_accuracy : epoch.accuracy)
                                 : (tested ? epoch.test_loss : epoch.loss));
      }
      EXPECT_LT(reducer.factor(), 1) << "nothing was reduced";
    }
}

// The end of an epoch, with all that follows from it, is not lost where a run was stopped there.
TEST(Fit, GoesOnAfterAStopAtTheEndOfAnEpoch) {
  const auto run = [](bool stops) {
    Cluster cluster;
    Trainer trainer(cluster, network(),
                    {.optimizer = optim::sgd(0.3),
                     .schedule = {.shape = optim::Plateau{.factor = 0.5, .patience = 0}},
                     .seed = 4,
                     .lanes = 2});
    FitOptions fit = {.batch_size = 20, .epochs = 20, .validation = samples()};
    std::vector<std::pair<double, double>> epochs;
    if (stops)
      fit.after_step.push_back([&](const TrainingState&) {
        trainer.request_stop();
        return true;
      });
    while (true) {
      const FitResult result = trainer.fit(samples(), fit);
      for (const TrainingState& epoch : result.epochs)
        epochs.emplace_back(epoch.loss, epoch.test_loss);
      if (result.stopped_by != "request") return std::pair{flat(trainer.weights()), epochs};
    }
  };
  const auto [whole, whole_epochs] = run(false);
  const auto [parts, parts_epochs] = run(true);
  EXPECT_TRUE(same_bits(whole, parts));
  EXPECT_EQ(whole_epochs, parts_epochs);
  EXPECT_EQ(whole_epochs.size(), 20u);
}

// Whose reason it is differs: the test at the end of the epoch is made by all workers or by none.
TEST(Fit, TheWishOfOneWorkerAtTheEndOfAnEpochStopsAll) {
  const std::vector<float> expected = alone({});
  for (const int who : {0, 1})
    on_workers(2, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, network(), trainer_options({}));
      FitOptions fit = Setting{}.fit;
      fit.batch_size = 13;
      fit.after_step.push_back(
          [&](const TrainingState& state) { return rank != who || state.step < 2; });
      EXPECT_EQ(trainer.fit(samples(), fit).last.step, 3);
      fit.after_step.clear();
      const FitResult rest = trainer.fit(samples(), fit);
      EXPECT_EQ(rest.last.step, 9);
      EXPECT_EQ(rest.epochs.size(), 3u);  // the first of them was due
      EXPECT_TRUE(same_bits(expected, flat(trainer.weights()))) << "worker " << rank;
    });
}

// Worker 1 has trained with other lanes and kernels before worker 0 reads the checkpoint.
TEST(Fit, GoesOnWithTheLanesAndKernelsOfACheckpoint) {
  const Model model =
      nn::sequential({nn::conv(16, {3, 3}, {.padding = {1, 1}}),
                      nn::conv(16, {3, 3}, {.padding = {1, 1}}), nn::flatten(), nn::dense(3)});
  const auto options = [](int lanes, bool exact) {
    TrainerOptions options = trainer_options({.lanes = lanes});
    options.exact_convolutions = exact;
    return options;
  };
  const TemporaryFolder folder;
  const auto train = [&](bool exact) {
    const std::filesystem::path checkpoints = folder / (exact ? "exact" : "fast");
    Cluster cluster;
    Trainer trainer(cluster, model, options(4, exact));
    trainer.fit(samples(), {.batch_size = 13, .steps = 2, .checkpoints = checkpoints});
    trainer.fit(samples(), {.batch_size = 13, .epochs = 3});
    return flat(trainer.weights());
  };
  const std::vector<float> expected = train(true);
  EXPECT_FALSE(same_bits(expected, train(false)));
  on_workers(2, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, model, options(0, false));
    trainer.fit(samples(), {.batch_size = 13, .steps = 1});
    const FitResult result = trainer.fit(
        samples(),
        {.batch_size = 13, .epochs = 3, .checkpoints = folder / "exact", .resume = rank == 0});
    EXPECT_EQ(result.last.step, 9);
    EXPECT_TRUE(same_bits(expected, flat(trainer.weights()))) << "worker " << rank;
  });
}

TEST(Fit, ACheckpointThatIsPassedOnIsWhole) {
  Cluster cluster;
  Trainer trainer(cluster, network(), trainer_options({}));
  trainer.fit(samples(), {.batch_size = 13, .steps = 2});
  const checkpoint::Checkpoint saved = trainer.checkpoint();
  ASSERT_FALSE(saved.optimizer.empty());
  Trainer other(cluster, network(), trainer_options({}));
  other.build({DType::f32, {1, 6, 6}});
  other.restore(saved);
  const checkpoint::Checkpoint again = other.checkpoint();
  EXPECT_TRUE(same_bits(flat(again.optimizer), flat(saved.optimizer)));
  EXPECT_EQ(again.state, saved.state);
}

// Samples whose first number is NaN as long as `spoilt` says so.
class Spoilt final : public data::Dataset {
 public:
  explicit Spoilt(const bool& spoilt) : spoilt_(spoilt) {}
  int64_t size() const override { return good_->size(); }
  const data::SampleLayout& layout() const override { return good_->layout(); }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    good_->read(index, input, target);
    if (spoilt_) *reinterpret_cast<float*>(input.data()) = NAN;
  }

 private:
  const bool& spoilt_;
  data::DatasetPtr good_ = samples();
};

TEST(Fit, ATestLossThatIsNoNumberIsNeverTheBest) {
  const TemporaryFolder folder;
  bool spoilt = true;
  Cluster cluster;
  Trainer trainer(cluster, nn::sequential({nn::flatten(), nn::dense(3)}), trainer_options({}));
  std::vector<bool> has_best;
  FitOptions fit = {.batch_size = 13,
                    .epochs = 6,
                    .validation = std::make_shared<Spoilt>(spoilt),
                    .patience = 3,
                    .checkpoints = folder / "checkpoints",
                    .keep_last = 0};
  fit.after_epoch.push_back([&](const TrainingState& state) {
    EXPECT_EQ(std::isfinite(state.test_loss), state.epoch == 2) << state.epoch;
    has_best.push_back(checkpoint::best_checkpoint(folder / "checkpoints").has_value());
    spoilt = state.epoch != 1;
    return true;
  });
  // Epoch 2 is the best, and those without a number count as bad ones.
  EXPECT_EQ(trainer.fit(samples(), fit).stopped_by, "patience");
  EXPECT_EQ(has_best, (std::vector{false, false, true, true, true}));
  EXPECT_EQ(checkpoint::load_checkpoint(*checkpoint::best_checkpoint(folder / "checkpoints")).step,
            6);
}

// A stop request on any worker, also while the network is built, allows one more step.
TEST(Fit, ARequestToStopDuringTheStartIsHeeded) {
  const auto stopped_at = [](Cluster& cluster, bool asks) {
    Trainer* asked = nullptr;
    const nn::Layer asking = {"asking", [&](nn::Build&, Value x) {
                                if (asked && asks) asked->request_stop();
                                return x;
                              }};
    Trainer trainer(cluster, nn::sequential({nn::flatten(), asking, nn::dense(3)}),
                    trainer_options({}));
    asked = &trainer;
    const FitResult result = trainer.fit(samples(), {.batch_size = 13, .epochs = 2});
    EXPECT_EQ(result.stopped_by, "request");
    return result.last.step;
  };
  Cluster alone;
  EXPECT_EQ(stopped_at(alone, true), 1);
  for (const int who : {0, 1})
    on_workers(2, [&](int rank, Cluster& cluster) {
      EXPECT_EQ(stopped_at(cluster, rank == who), 1) << "worker " << rank;
    });
}

TEST(Fit, ARunOnServersIsTestedAtItsEndToo) {
  for (const char* strategy : {"ps", "downpour"})
    for (const int64_t delay : {0, 2}) {
      TrainerOptions options = trainer_options({.strategy = strategy});
      options.strategy_options.of<DelayOptions>().delay = delay;
      options.strategy_options.of<DownpourOptions>().synchronous_epochs = delay == 0 ? 1 : 0;
      on_workers_and_servers(2, 1, [&](int rank, Cluster& cluster) {
        Trainer trainer(cluster, network(), options);
        const FitResult result =
            trainer.fit(samples(), {.batch_size = 13, .steps = 2, .validation = samples()});
        if (rank > 0) return;
        ASSERT_EQ(result.epochs.size(), 1u) << strategy;
        EXPECT_TRUE(result.last.tested);
        Cluster here;
        Trainer copy(here, network(), options);
        copy.build({DType::f32, {1, 6, 6}});
        copy.load_weights(trainer.weights());
        EXPECT_FLOAT_EQ(result.last.test_loss, copy.evaluate(samples()).loss) << strategy;
      });
    }
}

// The time is up after the first step. Several workers learn of it with the second one.
TEST(Fit, ARunByTimeIsJudgedAtItsEndToo) {
  const auto judged = [](Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options({}));
    const FitResult result = trainer.fit(
        samples(), {.batch_size = 13, .epochs = 2, .validation = samples(), .max_seconds = 1e-9});
    const int64_t last = cluster.size() > 1 ? 2 : 1;
    EXPECT_EQ(result.last.step, last);
    EXPECT_EQ(result.epochs.size(), 1u);
    EXPECT_TRUE(result.best && result.best->step == last);
    EXPECT_EQ(result.last.test_loss, trainer.evaluate(samples()).loss);
    return result.last.tested;
  };
  Cluster alone;
  EXPECT_TRUE(judged(alone));
  on_workers(2, [&](int, Cluster& cluster) { EXPECT_TRUE(judged(cluster)); });
}

TEST(Fit, AdvisesOnlyMetricsThatTheNetworkCanMeasure) {
  const auto advice = [](const std::string& best_by) {
    Cluster cluster;
    Trainer trainer(cluster, network(), trainer_options({}));
    return artel::error_of(
        [&] { trainer.fit(samples(), {.batch_size = 13, .epochs = 1, .best_by = best_by}); });
  };
  EXPECT_EQ(advice("f1"),
            "best_by: got \"f1\", expected a metric of one number that this run measures: loss, "
            "accuracy; add \"f1\" to train.metrics");
  const std::string of_two_classes = advice("auc");  // there are three
  EXPECT_NE(of_two_classes.find("train.metrics adds"), std::string::npos) << of_two_classes;
  EXPECT_NE(of_two_classes.find("recall"), std::string::npos) << of_two_classes;
  EXPECT_EQ(of_two_classes.find("auc", of_two_classes.find("adds")), std::string::npos)
      << of_two_classes;
  EXPECT_EQ(of_two_classes.find("mean absolute error"), std::string::npos) << of_two_classes;
}

std::string failure_of(const TrainerOptions& options, const data::DatasetPtr& set) {
  Cluster cluster;
  Trainer trainer(cluster, nn::sequential({nn::flatten(), nn::dense(4), nn::dense(3)}), options);
  return artel::error_of([&] { trainer.fit(set, {.batch_size = 4, .epochs = 5}); });
}

TEST(Fit, BlamesTheLearningRateOnlyForWeightsThatRunAway) {
  const std::string fast = failure_of({.optimizer = optim::sgd(1e12), .lanes = 2}, samples());
  EXPECT_NE(fast.find("the loss is"), std::string::npos) << fast;
  EXPECT_NE(fast.find("try a lower learning rate"), std::string::npos) << fast;
  Tensor x({8, 2}), y({8}, DType::i32);
  x.values<float>()[3] = NAN;
  const std::string bad =
      failure_of({.optimizer = optim::sgd(0.1), .lanes = 2}, data::tensor_dataset(x, y, 3));
  EXPECT_NE(bad.find("the loss is nan"), std::string::npos) << bad;
  EXPECT_EQ(bad.find("learning rate"), std::string::npos) << bad;
  EXPECT_NE(bad.find("check_numbers"), std::string::npos) << bad;
}

}  // namespace
}  // namespace artel
