// Parameter servers with constant gradients: an optimizer that divides the gradient by its length
// moves a weight by exactly the learning rate in each step, whatever workers do and however often
// the run is stopped and resumed. A contribution that is missing, or an optimizer that counts its
// updates wrongly, shows at once.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "artel/train/strategies/downpour.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

constexpr double kRate = 0.01;

// The gradient of |w + b - 1000| is -1 for both.
data::DatasetPtr far_away() {
  Tensor x({32, 1}), y({32, 1});
  for (float& value : x.values<float>()) value = 1;
  for (float& value : y.values<float>()) value = 1000;
  return data::tensor_dataset(x, y);
}

struct ServedRun {
  std::string strategy = "ps";
  std::optional<int64_t> delay = {};
  optim::OptimizerConfig optimizer = optim::adam(kRate);
  int workers = 4;
  int servers = 2;
  int64_t replicas = 1;
  std::string compress = "";
  DownpourOptions downpour = {};
  FitOptions fit = {};
  int watching = -1;   // the rank that fit.after_step is for; -1: all
  Callback pace = {};  // of the other ranks
};

TrainerOptions options_of(const ServedRun& c) {
  return {.optimizer = c.optimizer,
          .loss = "l1",
          .threads = 1,
          .lanes = 4,
          .strategy = c.strategy,
          .strategy_options = {DelayOptions{.delay = c.delay}, c.downpour,
                               PackingOptions{.compress = c.compress},
                               ReplicaOptions{.replicas = c.replicas}}};
}

double bias_of(const NamedTensors& weights) {
  for (const NamedTensor& weight : weights)
    if (weight.name.ends_with("bias")) return weight.tensor.values<float>()[0];
  ADD_FAILURE() << "there is no bias";
  return 0;
}

// The bias that training begins with.
double first_bias() {
  Cluster cluster;
  Trainer trainer(cluster, nn::sequential({nn::dense(1)}),
                  {.optimizer = optim::sgd(0), .loss = "l1", .threads = 1, .lanes = 4});
  trainer.fit(far_away(), {.batch_size = 16, .epochs = 1});
  return bias_of(trainer.weights());
}

// How far these weights are from where training begins, in learning rates.
double moved(const NamedTensors& weights) {
  static const double first = first_bias();
  return (bias_of(weights) - first) / kRate;
}

double saved_in(const std::filesystem::path& folder) {
  return moved(checkpoint::load_newest(folder)->checkpoint.weights);
}

void train_to(const std::filesystem::path& folder, int64_t step, const ServedRun& c) {
  on_workers_and_servers(c.workers, c.servers, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, nn::sequential({nn::dense(1)}), options_of(c));
    FitOptions fit = c.fit;
    fit.batch_size = 16;  // two steps an epoch
    fit.epochs = 1000;
    fit.steps = step;
    fit.checkpoints = folder;
    fit.resume = true;
    if (c.watching >= 0 && c.watching != rank) fit.after_step = {c.pace};
    trainer.fit(far_away(), fit);
    if (rank == 0 && c.fit.after_step.empty()) {
      EXPECT_NEAR(moved(trainer.weights()), static_cast<double>(step), 0.01);
    }
  });
}

void expect_steps(const std::vector<int64_t>& ends, const ServedRun& c, const std::string& what) {
  const TemporaryFolder folder;
  for (const int64_t end : ends) {
    train_to(folder.path(), end, c);
    EXPECT_NEAR(saved_in(folder.path()), static_cast<double>(end), 0.01) << what;
  }
}

std::string named(std::optional<int64_t> delay) {
  return fmt::format("delay {}", delay ? std::to_string(*delay) : "none");
}

TEST(ConstantGradients, AResumedRunCountsOn) {
  for (const std::optional<int64_t> delay : {std::optional<int64_t>(0), {1}, {4}, {}})
    expect_steps({30, 60}, {.delay = delay}, named(delay));
}

TEST(ConstantGradients, EveryRuleThatCounts) {
  for (const optim::OptimizerConfig& rule :
       {optim::adam(kRate), optim::adamw(kRate, {.weight_decay = 0})})
    for (const int workers : {1, 2, 3})
      expect_steps({7, 20}, {.optimizer = rule, .workers = workers, .servers = 1},
                   std::string(rule.name()));
}

TEST(ConstantGradients, WithCopiesOfServersAndWithCodecs) {
  expect_steps({10, 20}, {.replicas = 2}, "copies");
  expect_steps({10, 20}, {.compress = "fp16"}, "fp16");
}

TEST(ConstantGradients, DownpourGoesApartAfterItsFirstEpoch) {
  for (const int workers : {2, 3, 4})
    expect_steps({1, 2, 30, 60}, {.strategy = "downpour", .workers = workers},
                 fmt::format("{} workers", workers));
  for (const int64_t every : {2, 3, 7})
    expect_steps({20, 30},
                 {.strategy = "downpour",
                  .downpour = {.push_every = every, .fetch_every = every, .synchronous_epochs = 1}},
                 fmt::format("every {} steps", every));
}

TEST(ConstantGradients, TheLastStateHasThePushesOfAllWorkers) {
  for (int i = 0; i < 15; ++i) expect_steps({1, 2}, {.delay = i % 3 + 1}, "one step");
}

TEST(ConstantGradients, OtherStrategiesCountOn) {
  const TemporaryFolder folder;
  train_to(folder.path(), 10, {.delay = 4});
  train_to(folder.path(), 20, {.strategy = "auto", .workers = 2, .servers = 0});
  train_to(folder.path(), 30, {.delay = 0});
  train_to(folder.path(), 40, {});
  EXPECT_NEAR(saved_in(folder.path()), 40, 0.01);
}

// Each checkpoint on the way is as good as the last: workers continue after what it has of theirs.
TEST(ConstantGradients, ARunContinuesFromAnyCheckpoint) {
  namespace fs = std::filesystem;
  for (const char* const strategy : {"ps", "downpour"}) {
    const ServedRun c = {.strategy = strategy,
                         .downpour = {.push_every = 3, .fetch_every = 2, .synchronous_epochs = 0},
                         .fit = {.save_every = 5, .keep_last = 0}};
    const TemporaryFolder whole;
    train_to(whole.path(), 40, c);
    const std::vector<fs::path> all = checkpoint::list_checkpoints(whole.path());
    ASSERT_GT(all.size(), 8u);
    for (const fs::path& each : {all[1], all[all.size() / 2], all[all.size() - 2]}) {
      const TemporaryFolder other;
      fs::copy(each, other.path() / each.filename(), fs::copy_options::recursive);
      train_to(other.path(), 40, c);
      EXPECT_NEAR(saved_in(other.path()), 40, 0.01) << strategy << " from " << each.filename();
    }
  }
}

TEST(ConstantGradients, AStoppedRunLosesNothing) {
  for (const char* const strategy : {"ps", "downpour"})
    for (const int64_t last : {1, 4, 7, 12}) {
      ServedRun c = {.strategy = strategy,
                     .downpour = {.push_every = 4, .fetch_every = 3, .synchronous_epochs = 1}};
      const TemporaryFolder folder;
      c.watching = static_cast<int>(last % 4);
      // The others are far ahead when it stops, and make some steps after that.
      c.fit.after_step = {[last](const TrainingState& state) {
        std::this_thread::sleep_for(std::chrono::milliseconds(60 / last));
        return state.step < last;
      }};
      c.pace = [](const TrainingState&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return true;
      };
      train_to(folder.path(), 40, c);
      c.fit.after_step.clear();
      c.watching = -1;
      train_to(folder.path(), 40, c);
      EXPECT_NEAR(saved_in(folder.path()), 40, 0.01) << strategy << ", stopped after " << last;
    }
}

}  // namespace
}  // namespace artel
