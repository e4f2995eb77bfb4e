// Checkpoints that cannot be saved, and those that must not be.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/json_values.h"
#include "artel/exec/numerics.h"
#include "artel/train/loop/saved_state.h"
#include "tests/support/error_of.h"
#include "tests/support/file_limit.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> saved_steps(const fs::path& folder) {
  std::vector<int64_t> steps;
  for (const fs::path& path : checkpoint::list_checkpoints(folder))
    steps.push_back(checkpoint::load_checkpoint(path).step);
  return steps;
}

// A training on a disk that fails in some steps, for which `hinders` returns true.
std::string failure(const fs::path& folder, const std::function<bool(int64_t)>& hinders) {
  std::optional<FileLimit> full;
  Cluster cluster;
  Trainer trainer(cluster, network(), trainer_options({}));
  FitOptions fit = {
      .batch_size = 13, .epochs = 0, .steps = 6, .checkpoints = folder, .save_every = 1};
  fit.after_step.push_back([&](const TrainingState& state) {
    full.reset();
    if (hinders(state.step)) full.emplace(1000);  // less than the weights, more than the log
    return true;
  });
  return artel::error_of([&] { EXPECT_EQ(trainer.fit(samples(), fit).last.step, 6); });
}

TEST(Saving, IsTriedAgainWhenADiskIsFull) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  EXPECT_EQ(failure(folder.path(), [](int64_t step) { return step == 3 || step == 4; }), "");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<int64_t>{2, 5, 6}));
  EXPECT_NE(text.find("step 3 was not saved: [" + folder.path().string()), text.npos) << text;
  EXPECT_NE(text.find(" free in " + folder.path().string()), text.npos) << text;
  EXPECT_EQ(text.find("step 5 was not"), text.npos) << text;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 3 + 1);  // and the best
}

// A checkpoint is written while the next step computes, and contains nothing from that step.
TEST(Saving, EachCheckpointIsThatOfItsStep) {
  const TemporaryFolder folder;
  Cluster cluster;
  TrainerOptions options = trainer_options({});
  options.optimizer = optim::adamw(0.01);
  Trainer(cluster, network(), options)
      .fit(samples(), {.batch_size = 13,
                       .epochs = 0,
                       .steps = 4,
                       .checkpoints = folder.path(),
                       .save_every = 1,
                       .keep_last = 0});
  for (const fs::path& path : checkpoint::list_checkpoints(folder.path())) {
    const checkpoint::Checkpoint saved = checkpoint::load_checkpoint(path);
    Trainer trainer(cluster, network(), options);
    trainer.fit(samples(), {.batch_size = 13, .epochs = 0, .steps = saved.step});
    EXPECT_TRUE(same_bits(flat(trainer.weights()), flat(saved.weights))) << saved.step;
    EXPECT_TRUE(same_bits(flat(trainer.checkpoint().optimizer), flat(saved.optimizer)));
  }
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST(Saving, FailsIfTheLastStateIsNotSaved) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  const std::string error = failure(folder.path(), [](int64_t step) { return step >= 5; });
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(error.starts_with("[step 6] the last checkpoint was not saved: [")) << error;
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<int64_t>{2, 3, 4}));
}

// Without steps that follow, no loss tells of them.
TEST(Saving, RefusesWeightsThatAreNotFinite) {
  const TemporaryFolder folder;
  Cluster cluster;
  TrainerOptions options = trainer_options({});
  Trainer good(cluster, network(), options);
  FitOptions fit = {.batch_size = 13, .steps = 1, .checkpoints = folder.path(), .keep_last = 1};
  good.fit(samples(), fit);
  options.optimizer = optim::sgd(1e38);
  Trainer bad(cluster, network(), options);
  bad.build({DType::f32, {1, 6, 6}});
  bad.restore(checkpoint::load_newest(folder.path())->checkpoint);
  fit.steps = 2;
  testing::internal::CaptureStderr();
  try {
    bad.fit(samples(), fit);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric) << error.what();
    EXPECT_NE(std::string(error.what()).find("try a lower learning rate"), std::string::npos)
        << error.what();
  }
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<int64_t>{1}));
}

TEST(Saving, AValidationLossThatIsNotANumberIsNoObstacle) {
  const TemporaryFolder folder;
  Tensor x({4, 1, 6, 6}), y({4}, DType::i32);
  x.values<float>()[3] = NAN;
  Cluster cluster;
  TrainerOptions options = trainer_options({});
  options.schedule.shape = optim::Plateau{.factor = 0.5, .patience = 0};
  FitOptions fit = {.batch_size = 13,
                    .epochs = 2,
                    .validation = data::tensor_dataset(x, y, 3),
                    .checkpoints = folder.path()};
  Trainer first(cluster, network(), options);
  EXPECT_TRUE(std::isnan(first.fit(samples(), fit).last.test_loss));
  EXPECT_FALSE(checkpoint::best_checkpoint(folder.path()));
  fit.epochs = 3;
  fit.resume = true;
  fit.validation = samples();
  Trainer second(cluster, network(), options);
  EXPECT_EQ(second.fit(samples(), fit).last.step, 9);
  EXPECT_EQ(checkpoint::best_checkpoint(folder.path())->filename(), "step-000000009");
}

TEST(Saving, AFinishedRunIsNotSavedAgain) {
  const TemporaryFolder folder;
  Cluster cluster;
  FitOptions fit = {.batch_size = 13, .steps = 2, .checkpoints = folder.path()};
  Trainer(cluster, network(), trainer_options({})).fit(samples(), fit);
  const auto written = fs::last_write_time(folder / "step-000000002/checkpoint.json");
  fit.resume = true;
  const FitResult again = Trainer(cluster, network(), trainer_options({})).fit(samples(), fit);
  EXPECT_EQ(again.last.step, 2);
  EXPECT_TRUE(again.epochs.empty());
  EXPECT_EQ(fs::last_write_time(folder / "step-000000002/checkpoint.json"), written);
}

TEST(Fit, NeedsAnEnd) {
  Cluster cluster;
  Trainer trainer(cluster, network(), trainer_options({}));
  EXPECT_THROW(trainer.fit(samples(), {.batch_size = 13, .epochs = 0, .steps = 0}), Error);
}

// A checkpoint of another arithmetic, or of a version that did not say, is continued with a
// warning.
TEST(Saving, AnotherArithmeticIsTold) {
  Cluster cluster;
  const auto warning = [&](const std::function<void(nlohmann::json&)>& change) {
    Trainer trainer(cluster, network(), trainer_options({}));
    trainer.fit(samples(), {.batch_size = 13, .steps = 1});
    checkpoint::Checkpoint saved = trainer.checkpoint();
    EXPECT_EQ(numerics_in_state(saved.state), kNumericsVersion);
    nlohmann::json state = nlohmann::json::parse(saved.state);
    change(state);
    saved.state = state.dump();
    testing::internal::CaptureStderr();
    trainer.restore(saved);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning([](auto&) {}), "");
  const std::string old = warning([](auto& state) { state.erase("numerics"); });
  EXPECT_NE(old.find("computed with numerics 1, this version has numerics 2"), old.npos) << old;
  const std::string later = warning([](auto& state) { state["numerics"] = 9; });
  EXPECT_NE(later.find("computed with numerics 9"), later.npos) << later;
}

}  // namespace
}  // namespace artel
