// Training on parameter servers: without delay the bits of one worker, with it a good result.
// Workers and servers are threads here; system tests do the same with processes.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/train/strategies/downpour.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

struct Outcome {
  std::vector<float> weights;
  FitResult result;
};

// Trains with `servers` behind the workers; what worker 0 has at the end.
Outcome train_on_servers(int workers, int servers, const TrainerOptions& options, FitOptions fit) {
  Outcome outcome;
  on_workers_and_servers(workers, servers, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, network(), options);
    const FitResult result = trainer.fit(samples(), fit);
    if (rank == 0) outcome = {flat(trainer.weights()), result};
  });
  return outcome;
}

TrainerOptions options_with(const std::string& strategy, std::optional<int64_t> delay = 0) {
  TrainerOptions options = trainer_options({.strategy = strategy});
  options.strategy_options.of<DelayOptions>().delay = delay;
  return options;
}

const FitOptions kFit = {.batch_size = 13, .epochs = 3, .validation = samples()};

std::vector<float> alone_with(TrainerOptions options, const FitOptions& fit) {
  options.strategy = "auto";
  Cluster cluster;
  Trainer trainer(cluster, network(), options);
  trainer.fit(samples(), fit);
  return flat(trainer.weights());
}

TEST(Servers, WithoutDelayTheBitsOfOneWorker) {
  const std::vector<float> expected = alone({});
  for (const auto& [workers, servers] : {std::pair{1, 1}, {2, 3}, {3, 2}, {5, 1}}) {
    const Outcome outcome = train_on_servers(workers, servers, options_with("ps"), kFit);
    EXPECT_TRUE(same_bits(expected, outcome.weights)) << workers << " and " << servers;
    ASSERT_EQ(outcome.result.servers.staleness.size(), 1u);
    EXPECT_EQ(outcome.result.servers.staleness.begin()->first, 0);
  }
}

TEST(Servers, EveryRuleGivesTheBitsOfOneWorker) {
  for (const optim::OptimizerConfig& rule :
       {optim::adam(0.01), optim::adagrad(0.05), optim::lamb(0.01)}) {
    TrainerOptions options = options_with("ps");
    options.optimizer = rule;
    const Outcome outcome = train_on_servers(3, 2, options, kFit);
    EXPECT_TRUE(same_bits(alone_with(options, kFit), outcome.weights)) << rule.name();
  }
}

// The thread sanitizer has no addresses for the shared memory of eleven ranks in one process.
#ifdef __SANITIZE_THREAD__
constexpr int kMany = 3;
#else
constexpr int kMany = 9;
#endif

TEST(Servers, ClipByTheWholeGradientWithTheBitsOfOneWorker) {
  for (optim::OptimizerConfig rule : {optim::sgd(0.1, {.momentum = 0.9}), optim::lamb(0.01)}) {
    TrainerOptions options = options_with("ps");
    options.optimizer = rule;
    const std::vector<float> free = alone_with(options, kFit);
    options.optimizer.clip_norm = 0.1;
    const std::vector<float> expected = alone_with(options, kFit);
    EXPECT_FALSE(same_bits(expected, free)) << "nothing was clipped";
    for (const auto& [workers, servers] : {std::pair{1, 1}, {1, 2}, {2, 1}, {3, 2}, {2, kMany}})
      EXPECT_TRUE(same_bits(expected, train_on_servers(workers, servers, options, kFit).weights))
          << rule.name() << ", " << workers << " and " << servers;
  }
}

// A worker's samples of a batch count by their share, however long its own gradient is. So two
// workers together move the weights in a step by at most `clip_norm` times the learning rate.
TEST(Servers, EachWorkerClipsItsOwnGradientWhenApart) {
  TrainerOptions options = options_with("ps", std::nullopt);
  options.optimizer = optim::sgd(1);
  const FitOptions fit = {.batch_size = 20, .epochs = 1};  // two steps
  TrainerOptions still = options;
  still.optimizer.learning_rate = 0;
  const std::vector<float> initial = alone_with(still, fit);
  const auto moved = [&](double clip_norm) {
    options.optimizer.clip_norm = clip_norm;
    const std::vector<float> weights = train_on_servers(2, 2, options, fit).weights;
    double squares = 0;
    for (size_t i = 0; i < weights.size(); ++i) squares += std::pow(weights[i] - initial[i], 2);
    return std::sqrt(squares);
  };
  EXPECT_LE(moved(0.1), 2 * 0.1);
  EXPECT_GT(moved(0), 2 * 0.1);
}

TEST(Servers, DelayBoundsStaleness) {
  FitOptions fit = kFit;
  fit.epochs = 20;
  // The machine's load decides how stale a push is: without momentum they all learn nevertheless.
  const auto with_delay = [&](std::optional<int64_t> delay) {
    TrainerOptions options = options_with("ps", delay);
    options.optimizer = optim::sgd(0.05);
    return train_on_servers(3, 2, options, fit);
  };
  const Outcome bounded = with_delay(2);
  // While a worker computes, each of two others makes at most 2 + 2 pushes.
  EXPECT_LE(bounded.result.servers.staleness.rbegin()->first, 8);
  EXPECT_LT(bounded.result.last.test_loss, 1.0);  // from 1.2
  EXPECT_LT(with_delay(std::nullopt).result.last.test_loss, 1.0);
}

TEST(Servers, CodecsOnBothWays) {
  for (const char* codec : {"fp16", "int8", "top-k 10%"}) {
    TrainerOptions options = options_with("ps");
    options.strategy_options.of<PackingOptions>().compress = codec;
    FitOptions fit = kFit;
    fit.epochs = 20;
    for (const double clip_norm : {0.0, 1.0}) {
      options.optimizer.clip_norm = clip_norm;
      EXPECT_LT(train_on_servers(2, 2, options, fit).result.last.test_loss, 1.2)
          << codec << ", clipped to " << clip_norm;
    }
  }
}

TEST(Servers, DownpourBeginsInStepAndGoesOnApart) {
  TrainerOptions options = options_with("downpour");
  const double clip_norm = 1;
  options.optimizer = optim::sgd(0.05);
  options.optimizer.clip_norm = clip_norm;
  options.strategy_options.of<DownpourOptions>() = {.push_every = 2, .fetch_every = 3};
  FitOptions fit = kFit;
  fit.epochs = 20;
  const Outcome outcome = train_on_servers(2, 1, options, fit);
  EXPECT_LT(outcome.result.last.test_loss, 1.2);
  // A single epoch, which is synchronous, so with Adagrad it is exact.
  fit.epochs = 1;
  const Outcome first = train_on_servers(2, 1, options, fit);
  options.optimizer = optim::adagrad(0.05);
  options.optimizer.clip_norm = clip_norm;
  EXPECT_TRUE(same_bits(alone_with(options, fit), first.weights));
}

}  // namespace
}  // namespace artel
