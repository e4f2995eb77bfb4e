// Training on several workers gives the bits of one. Workers are threads here, each with its own
// group, model and data; system tests do the same with processes.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include <unistd.h>

#include "artel/base/random.h"
#include "artel/nn/layers.h"
#include "artel/train/agreement.h"
#include "artel/train/balance.h"
#include "artel/train/trainer.h"

namespace artel {
namespace {

Model network() {
  return nn::sequential({nn::conv(4, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(), nn::relu(),
                         nn::max_pool({2, 2}), nn::flatten(), nn::dropout(0.2), nn::dense(8),
                         nn::relu(), nn::dense(3)});
}

data::DatasetPtr samples() {
  Tensor x({40, 1, 6, 6}), y({40}, DType::i32);
  Random random{5};
  for (float& v : x.values<float>()) v = random.normal();
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(3));
  return data::tensor_dataset(x, y);
}

struct Setting {
  int workers = 1;
  std::string strategy = "auto";
  std::string reduction = "exact";
  int lanes = 8;
  int64_t batch = 13;
};

NamedTensors train(Cluster& cluster, const Setting& setting) {
  Trainer trainer(cluster, network(),
                  {.optimizer = optim::sgd(0.1, {.momentum = 0.9}),
                   .seed = 4,
                   .threads = 1,
                   .lanes = setting.lanes,
                   .strategy = setting.strategy,
                   .reduction = setting.reduction});
  trainer.fit(samples(), {.batch_size = setting.batch, .epochs = 3, .validation = samples()});
  return trainer.weights();
}

// Runs `body(rank, cluster)` on as many threads as workers and rethrows the first error.
void on_workers(int workers, const std::function<void(int, Cluster&)>& body) {
  static std::atomic<int> runs = 0;
  const std::string name =
      "distributed_test_" + std::to_string(::getpid()) + "_" + std::to_string(runs++);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(workers));
  for (int rank = 0; rank < workers; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Cluster cluster(comm::GroupOptions{.rank = rank, .size = workers, .address = name});
        body(rank, cluster);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

std::vector<float> flat(const NamedTensors& weights) {
  std::vector<float> all;
  for (const NamedTensor& w : weights)
    all.insert(all.end(), w.tensor.values<float>().begin(), w.tensor.values<float>().end());
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> alone(const Setting& setting) {
  Cluster cluster;
  return flat(train(cluster, setting));
}

TEST(Distributed, SameBitsOnAnyNumberOfWorkers) {
  const std::vector<float> expected = alone({});
  for (const int workers : {2, 3, 5, 8})
    on_workers(workers, [&](int rank, Cluster& cluster) {
      EXPECT_TRUE(same_bits(expected, flat(train(cluster, {.workers = workers}))))
          << "worker " << rank << " of " << workers;
    });
}

TEST(Distributed, EveryStrategyGivesTheSameBits) {
  const std::vector<float> expected = alone({});
  for (const char* strategy : {"ring", "tree", "halving", "hierarchical", "coordinator"})
    on_workers(3, [&](int, Cluster& cluster) {
      EXPECT_TRUE(same_bits(expected, flat(train(cluster, {.strategy = strategy})))) << strategy;
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

TEST(Distributed, DifferencesAreFoundBeforeTheFirstStep) {
  std::vector<std::string> messages(2);
  EXPECT_THROW(on_workers(2,
                          [&](int rank, Cluster& cluster) {
                            try {
                              train(cluster, {.batch = rank == 0 ? 13 : 16});
                            } catch (const Error& error) {
                              messages[rank] = error.what();
                              throw;
                            }
                          }),
               Error);
  for (const std::string& message : messages)
    EXPECT_EQ(message,
              "the workers were started differently: worker 1 has 'batch_size = 16', worker 0 has "
              "'batch_size = 13'; start all with the same configuration, data and version");
}

TEST(Distributed, NeedsALaneForEachWorker) {
  EXPECT_THROW(on_workers(3, [](int, Cluster& cluster) { train(cluster, {.lanes = 2}); }), Error);
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

TEST(Balance, LanesFollowSpeed) {
  const comm::LaneLayout even = comm::LaneLayout::even(8, 2);
  EXPECT_EQ(balanced_lanes(even, {1.0, 1.0}).lanes_of_rank, (std::vector<int>{4, 4}));
  EXPECT_EQ(balanced_lanes(even, {1.0, 2.0}).lanes_of_rank, (std::vector<int>{6, 2}));
  EXPECT_EQ(balanced_lanes(even, {1.0, 1.02}).lanes_of_rank, (std::vector<int>{4, 4}));
  EXPECT_EQ(balanced_lanes(even, {1.0, 100.0}).lanes_of_rank, (std::vector<int>{7, 1}));
  EXPECT_EQ(balanced_lanes({2, {1, 1}}, {1.0, 9.0}).lanes_of_rank, (std::vector<int>{1, 1}));
}

}  // namespace
}  // namespace artel
