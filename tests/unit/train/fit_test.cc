// What a fit reports, watches and says when it fails.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/data/loader.h"
#include "tests/unit/train/servers.h"
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

// Of a mixture, the class with the larger share is the right answer.
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

TEST(Fit, ARunOnServersIsTestedAtItsEndToo) {
  for (const char* strategy : {"ps", "downpour"})
    for (const int64_t delay : {0, 2}) {
      TrainerOptions options = trainer_options({.strategy = strategy});
      options.delay = delay;
      options.synchronous_epochs = delay == 0 ? 1 : 0;
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

std::string failure_of(const TrainerOptions& options, const data::DatasetPtr& set) {
  Cluster cluster;
  Trainer trainer(cluster, nn::sequential({nn::flatten(), nn::dense(4), nn::dense(3)}), options);
  try {
    trainer.fit(set, {.batch_size = 4, .epochs = 5});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
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
