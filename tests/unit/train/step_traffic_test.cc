// docs/strategies.md: the bytes that a worker sends and receives in a step, with servers and with
// sharding. tests/unit/train/exchange_traffic_test.cc counts those of the other strategies.
#include <gtest/gtest.h>

#include "artel/train/strategies/downpour.h"
#include "artel/train/strategies/sharded.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// No layer has anything to exchange but its gradients.
Model wide_network() {
  return nn::sequential({nn::flatten(), nn::dense(256), nn::relu(), nn::dense(3)});
}
constexpr double kGradientBytes = (36 * 256 + 256 + 256 * 3 + 3) * sizeof(float);

// In units of the gradient, for each worker.
struct PerStep {
  double sent = 0, received = 0;
};

std::vector<PerStep> measured(int workers, int servers, const TrainerOptions& options) {
  constexpr int64_t kFrom = 4, kTo = 44;  // a whole number of pushes, after the start
  std::vector<PerStep> all(static_cast<size_t>(workers));
  on_workers_and_servers(workers, servers, [&](int rank, Cluster& cluster) {
    PerStep& own = all[static_cast<size_t>(rank)];
    FitOptions fit = {.batch_size = 8, .epochs = 0, .steps = kTo};
    fit.after_step.push_back([&](const TrainingState& now) {
      const double sign = now.step == kFrom ? -1 : now.step == kTo ? 1 : 0;
      constexpr double kUnit = kGradientBytes * (kTo - kFrom);
      own.sent += sign * static_cast<double>(now.sent_bytes) / kUnit;
      own.received += sign * static_cast<double>(now.received_bytes) / kUnit;
      return true;
    });
    Trainer trainer(cluster, wide_network(), options);
    trainer.fit(samples(), fit);
  });
  return all;
}

constexpr double kHeads = 0.05;  // and statistics of a step

TEST(StepTraffic, OfParameterServersIsTheGradientAndTheWeights) {
  for (const int servers : {1, 2})
    for (const PerStep& worker :
         measured(2, servers, trainer_options({.strategy = "ps", .lanes = 4}))) {
      EXPECT_NEAR(worker.sent, 1, kHeads) << servers;
      EXPECT_NEAR(worker.received, 1, kHeads) << servers;
    }
}

TEST(StepTraffic, OfDownpourIsThatOfItsPushesAndFetches) {
  for (const int64_t push_every : {1, 4}) {
    TrainerOptions options = trainer_options({.strategy = "downpour", .lanes = 4});
    options.strategy_options.of<DownpourOptions>() = {
        .push_every = push_every, .fetch_every = 4, .synchronous_epochs = 0};
    for (const PerStep& worker : measured(2, 1, options)) {
      // A push or a fetch may be under way when the bytes are read.
      const double pushes = 1.0 / static_cast<double>(push_every);
      EXPECT_NEAR(worker.sent, pushes, kHeads + pushes / 10);
      EXPECT_NEAR(worker.received, 0.25, kHeads + 0.25 / 10);
    }
  }
}

TEST(StepTraffic, OfShardedGradientsIsASumAndNewWeights) {
  for (const int workers : {2, 4}) {
    TrainerOptions options = trainer_options({.lanes = 4});
    options.strategy_options.of<ShardingOptions>().sharding = "gradients";
    double sent = 0;  // by all, because parts differ in size
    for (const PerStep& worker : measured(workers, 0, options)) sent += worker.sent;
    EXPECT_NEAR(sent, 2 * (workers - 1.0), kHeads * workers * workers) << workers;
  }
}

}  // namespace
}  // namespace artel
