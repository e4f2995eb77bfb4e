// Training on parameter servers: without delay the bits of one worker, with it a good result.
// Workers and servers are threads here; system tests do the same with processes.
#include <gtest/gtest.h>

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
  static std::atomic<int> runs = 0;
  const std::string name = fmt::format("servers_test_{}_{}", ::getpid(), runs++);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<size_t>(workers + servers));
  for (int rank = 0; rank < workers + servers; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Cluster cluster(comm::GroupOptions{
            .rank = rank, .size = workers + servers, .address = name, .servers = servers});
        if (cluster.is_server()) return cluster.serve();
        Trainer trainer(cluster, network(), options);
        const FitResult result = trainer.fit(samples(), fit);
        if (rank == 0) outcome = {flat(trainer.weights()), result};
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return outcome;
}

TrainerOptions options_with(const std::string& strategy, std::optional<int64_t> delay = 0) {
  TrainerOptions options = trainer_options({.strategy = strategy});
  options.delay = delay;
  return options;
}

const FitOptions kFit = {.batch_size = 13, .epochs = 3, .validation = samples()};

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
    options.strategy = "auto";
    Cluster cluster;
    Trainer trainer(cluster, network(), options);
    trainer.fit(samples(), kFit);
    EXPECT_TRUE(same_bits(flat(trainer.weights()), outcome.weights)) << rule.name();
  }
}

TEST(Servers, DelayBoundsStaleness) {
  FitOptions fit = kFit;
  fit.epochs = 20;
  const Outcome bounded = train_on_servers(3, 2, options_with("ps", 2), fit);
  // While a worker computes, each of two others makes at most 2 + 2 pushes.
  EXPECT_LE(bounded.result.servers.staleness.rbegin()->first, 8);
  EXPECT_LT(bounded.result.last.test_loss, 1.2);
  const Outcome unbounded = train_on_servers(3, 2, options_with("ps", std::nullopt), fit);
  EXPECT_LT(unbounded.result.last.test_loss, 1.2);
}

TEST(Servers, CodecsOnBothWays) {
  for (const char* codec : {"fp16", "int8", "top-k 10%"}) {
    TrainerOptions options = options_with("ps");
    options.compress = codec;
    FitOptions fit = kFit;
    fit.epochs = 20;
    EXPECT_LT(train_on_servers(2, 2, options, fit).result.last.test_loss, 1.2) << codec;
  }
}

TEST(Servers, DownpourBeginsInStepAndGoesOnApart) {
  TrainerOptions options = options_with("downpour");
  options.optimizer = optim::sgd(0.05);
  options.push_every = 2;
  options.fetch_every = 3;
  FitOptions fit = kFit;
  fit.epochs = 20;
  const Outcome outcome = train_on_servers(2, 1, options, fit);
  EXPECT_LT(outcome.result.last.test_loss, 1.2);
  // One epoch only: all of it in step, so with Adagrad it is exact.
  fit.epochs = 1;
  const Outcome first = train_on_servers(2, 1, options, fit);
  options.strategy = "auto";
  options.optimizer = optim::adagrad(0.05);
  Cluster cluster;
  Trainer trainer(cluster, network(), options);
  trainer.fit(samples(), fit);
  EXPECT_TRUE(same_bits(flat(trainer.weights()), first.weights));
}

}  // namespace
}  // namespace artel
