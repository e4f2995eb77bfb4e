// The size of buckets: chosen by the link, and without an effect on exact sums.
#include "artel/train/step/bucket_size.h"

#include <gtest/gtest.h>

#include "artel/train/strategies/sharded.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(BucketSize, FollowsTheLink) {
  constexpr size_t kMiB = size_t{1} << 20, kGradients = 100 * kMiB;
  const comm::LinkCost gigabit = {100e-6, 117e6}, ten = {50e-6, 1.17e9};
  // sqrt(3 * 100 us * 117 MB/s * 100 MiB) = 1.9 MB.
  EXPECT_EQ(bucket_bytes_for(gigabit, kGradients), 2 * kMiB);
  EXPECT_EQ(bucket_bytes_for(ten, kGradients), 4 * kMiB);
  // More latency, more in each message; fewer gradients, smaller pieces of them.
  EXPECT_GT(bucket_bytes_for({10e-3, 117e6}, kGradients), bucket_bytes_for(gigabit, kGradients));
  EXPECT_LT(bucket_bytes_for(gigabit, 10 * kMiB), bucket_bytes_for(gigabit, kGradients));
  EXPECT_EQ(bucket_bytes_for({0, 1e12}, 0), kMiB / 4);
  EXPECT_EQ(bucket_bytes_for({10, 1e12}, kGradients), 64 * kMiB);
}

std::vector<float> weights_with_buckets(Cluster& cluster, size_t bucket_bytes,
                                        const std::string& strategy, const std::string& sharding) {
  TrainerOptions options = trainer_options({.strategy = strategy});
  options.bucket_bytes = bucket_bytes;
  options.strategy_options.of<ShardingOptions>().sharding = sharding;
  Trainer trainer(cluster, network(), options);
  trainer.fit(samples(), {.batch_size = 13, .epochs = 3, .validation = samples()});
  return flat(trainer.weights());
}

TEST(BucketSize, ChangesNoBitsOfExactSums) {
  const std::vector<float> expected = alone({});
  for (const size_t bytes : {size_t{1}, size_t{700}, size_t{1} << 30}) {
    for (const char* sharding : {"none", "weights"})
      on_workers(2, [&](int, Cluster& cluster) {
        EXPECT_TRUE(same_bits(expected, weights_with_buckets(cluster, bytes, "auto", sharding)))
            << bytes << " bytes, sharding " << sharding;
      });
    on_workers_and_servers(2, 2, [&](int rank, Cluster& cluster) {
      const std::vector<float> got = weights_with_buckets(cluster, bytes, "ps", "none");
      if (rank == 0) {
        EXPECT_TRUE(same_bits(expected, got)) << bytes << " bytes on servers";
      }
    });
  }
}

}  // namespace
}  // namespace artel
