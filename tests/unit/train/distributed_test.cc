// Training on several workers gives the bits of one. Workers are threads here, each with its own
// group, model and data; system tests do the same with processes.
#include <gtest/gtest.h>

#include "artel/comm/collectives/balance.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(Distributed, SameBitsOnAnyNumberOfWorkers) {
  const std::vector<float> expected = alone({});
  for (const int workers : {2, 3, 5, 8})
    on_workers(workers, [&](int rank, Cluster& cluster) {
      EXPECT_TRUE(same_bits(expected, flat(train(cluster, {}))))
          << "worker " << rank << " of " << workers;
    });
}

TEST(Distributed, ExactReductionsGiveTheSameBits) {
  const std::vector<float> expected = alone({});
  for (const Setting& setting :
       {Setting{.strategy = "allreduce"}, Setting{.strategy = "coordinator"},
        Setting{.strategy = "hierarchical", .reduction = "exact"}})
    on_workers(3, [&](int, Cluster& cluster) {
      EXPECT_TRUE(same_bits(expected, flat(train(cluster, setting)))) << setting.strategy;
    });
}

// A name that says how to add is taken at its word.
TEST(Distributed, ANamedAlgorithmAddsInItsOwnOrder) {
  const auto path = [](const Setting& setting) {
    std::string text;
    on_workers(3, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, network(), trainer_options(setting));
      const FitResult result = trainer.fit(samples(), {.batch_size = 13, .epochs = 1});
      EXPECT_EQ(result.last.lanes, 8);
      if (rank == 0) text = to_string(result.last.exchange);
    });
    return text;
  };
  for (const char* strategy : {"ring", "tree", "halving", "hierarchical"}) {
    EXPECT_EQ(path({.strategy = strategy}), std::string(strategy) + ", fast");
    EXPECT_EQ(path({.strategy = strategy, .reduction = "fast"}), std::string(strategy) + ", fast");
  }
  EXPECT_EQ(path({.strategy = "hierarchical", .reduction = "exact"}), "hierarchical, exact");
  EXPECT_EQ(path({}), "direct, exact");
  EXPECT_EQ(path({.reduction = "fast"}), "automatic, fast");
  EXPECT_EQ(path({.strategy = "coordinator"}), "coordinator, exact");
  EXPECT_EQ(path({.compress = "int8"}), "int8, lossy");
  EXPECT_EQ(path({.local_steps = 4}), "average every 4 steps, local");
}

TEST(Distributed, ANamedAlgorithmThatCannotBeExactIsRefused) {
  for (const char* strategy : {"ring", "tree", "halving"}) try {
      on_workers(2, [&](int, Cluster& cluster) {
        train(cluster, {.strategy = strategy, .reduction = "exact"});
      });
      ADD_FAILURE() << strategy;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("cluster.reduction"), std::string::npos) << text;
      EXPECT_NE(text.find(std::string("cluster.strategy = \"") + strategy), std::string::npos)
          << text;
    }
}

TEST(Distributed, AnyNumberOfCoordinatorsGivesTheSameBits) {
  const std::vector<float> expected = alone({});
  for (const int coordinators : {2, 3, 9})
    on_workers(3, [&](int, Cluster& cluster) {
      const Setting setting = {.strategy = "coordinator", .coordinators = coordinators};
      EXPECT_TRUE(same_bits(expected, flat(train(cluster, setting)))) << coordinators;
    });
}

TEST(Distributed, FastReductionIsCloseAndEqualOnAllWorkers) {
  const std::vector<float> expected = alone({});
  for (const char* strategy : {"ring", "tree", "halving"}) {
    std::vector<std::vector<float>> results(3);
    on_workers(3, [&](int rank, Cluster& cluster) {
      results[rank] = flat(train(cluster, {.strategy = strategy, .reduction = "fast"}));
    });
    for (const std::vector<float>& result : results) {
      EXPECT_TRUE(same_bits(results[0], result)) << strategy;
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-3);
    }
  }
}

TEST(Distributed, ANewRunHasALaneForEachWorker) {
  on_workers(3, [](int, Cluster& cluster) {
    EXPECT_TRUE(same_bits(alone({.lanes = 4}), flat(train(cluster, {.lanes = 2}))));
  });
}

// The default number of lanes depends on the batch and the network only.
TEST(Distributed, DefaultsGiveTheSameBits) {
  const Model model = nn::sequential({nn::flatten(), nn::dense(8), nn::relu(), nn::dense(3)});
  const auto weights = [&](Cluster& cluster, int threads) {
    Trainer trainer(cluster, model, {.seed = 4, .threads = threads});
    EXPECT_EQ(trainer.lanes(), 0);  // nobody has said how large a batch is
    trainer.fit(samples(), {.batch_size = 13, .epochs = 2});
    EXPECT_EQ(trainer.lanes(), 8);
    return flat(trainer.weights());
  };
  Cluster one;
  const std::vector<float> expected = weights(one, 1);
  EXPECT_TRUE(same_bits(expected, weights(one, 3)));
  for (const int workers : {2, 3, 8})
    on_workers(workers, [&](int, Cluster& cluster) {
      for (const int threads : {1, 2})
        EXPECT_TRUE(same_bits(expected, weights(cluster, threads)))
            << workers << " workers with " << threads << " threads";
    });
}

TEST(Distributed, BatchNormHasEnoughSamplesInEachLane) {
  const auto lanes = [](Setting setting, int64_t batch) {
    Cluster one;
    setting.lanes = 0;
    Trainer trainer(one, network(), trainer_options(setting));
    trainer.fit(samples({128, 1, 6, 6}), {.batch_size = batch, .steps = 1});
    return trainer.lanes();
  };
  EXPECT_EQ(lanes({}, 40), 1);
  EXPECT_EQ(lanes({}, 64), 2);
  EXPECT_EQ(lanes({}, 128), 4);
  EXPECT_EQ(lanes({.freeze = {"0.", "1."}}, 64), 8);  // a frozen one uses running statistics
}

// A trainer that has not begun yet has no lanes, and neither does its checkpoint.
TEST(Distributed, ACheckpointBeforeTheFirstStepHasNoLanes) {
  Cluster one;
  const auto make = [&] {
    auto trainer = std::make_unique<Trainer>(one, network(), TrainerOptions{.seed = 4});
    trainer->build({DType::f32, {1, 6, 6}});
    return trainer;
  };
  const auto untouched = make(), restored = make();
  restored->restore(untouched->checkpoint());
  for (Trainer* trainer : {untouched.get(), restored.get()})
    trainer->fit(samples(), {.batch_size = 40, .steps = 2});
  EXPECT_EQ(restored->lanes(), 1);
  EXPECT_TRUE(same_bits(flat(untouched->weights()), flat(restored->weights())));
}

// A run with two lanes keeps them: the third worker stands by.
TEST(Distributed, ARunGoesOnWithMoreWorkersThanLanes) {
  const auto steps = [](int64_t count) {
    Setting setting = {.lanes = 2};
    setting.fit.epochs = 0;
    setting.fit.steps = count;
    return setting;
  };
  Cluster one;
  Trainer first(one, network(), trainer_options(steps(4)));
  FitOptions fit = steps(4).fit;
  fit.batch_size = 13;
  first.fit(samples(), fit);
  const checkpoint::Checkpoint begun = first.checkpoint();
  fit.steps = 9;
  on_workers(3, [&](int, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options(steps(9)));
    trainer.build({DType::f32, {1, 6, 6}});
    trainer.restore(begun);
    trainer.fit(samples(), fit);
    EXPECT_EQ(trainer.lanes(), 2);
    EXPECT_TRUE(same_bits(alone(steps(9)), flat(trainer.weights())));
  });
}

TEST(Distributed, AnErrorOfOneStopsAllWithItsCause) {
  std::vector<std::string> messages(3);
  EXPECT_THROW(on_workers(3,
                          [&](int rank, Cluster& cluster) {
                            Trainer trainer(cluster, network(), {.threads = 1, .lanes = 3});
                            FitOptions options = {.batch_size = 6, .epochs = 5};
                            options.after_step.push_back([&](const TrainingState& state) -> bool {
                              if (rank == 1 && state.step == 4)
                                fail(ErrorKind::io, "[data.bin] cannot read: disk on fire");
                              return true;
                            });
                            try {
                              trainer.fit(samples(), options);
                            } catch (const Error& error) {
                              messages[rank] = error.what();
                              throw;
                            }
                          }),
               Error);
  for (const std::string& message : messages)
    EXPECT_NE(message.find("[data.bin] cannot read: disk on fire"), std::string::npos) << message;
}

// Buckets that are still on the wire when a step fails must not outlive what they use.
TEST(Distributed, ALossThatRunsAwayEndsWithBucketsOnTheWire) {
  const Model wide = nn::sequential({nn::flatten(), nn::dense(1100), nn::relu(), nn::dense(1100),
                                     nn::relu(), nn::dense(1100), nn::relu(), nn::dense(3)});
  on_workers(2, [&](int, Cluster& cluster) {
    Trainer trainer(cluster, wide, {.optimizer = optim::sgd(1e30), .threads = 1, .lanes = 2});
    try {
      trainer.fit(samples(), {.batch_size = 4, .epochs = 2});
      ADD_FAILURE() << "the loss stayed finite";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("the loss is"), std::string::npos) << error.what();
    }
  });
}

TEST(Balance, LanesFollowSpeed) {
  const comm::LaneLayout even = comm::LaneLayout::even(8, 2);
  EXPECT_EQ(comm::balanced_lanes(even, {1.0, 1.0}).lanes_of_rank, (std::vector<int>{4, 4}));
  EXPECT_EQ(comm::balanced_lanes(even, {1.0, 2.0}).lanes_of_rank, (std::vector<int>{6, 2}));
  EXPECT_EQ(comm::balanced_lanes(even, {1.0, 1.02}).lanes_of_rank, (std::vector<int>{4, 4}));
  EXPECT_EQ(comm::balanced_lanes(even, {1.0, 100.0}).lanes_of_rank, (std::vector<int>{7, 1}));
  EXPECT_EQ(comm::balanced_lanes({2, {1, 1}}, {1.0, 9.0}).lanes_of_rank, (std::vector<int>{1, 1}));
}

}  // namespace
}  // namespace artel
