#include "artel/ps/sample_shares.h"

#include <gtest/gtest.h>

namespace artel::ps {
namespace {

int64_t samples_of(const SampleShares& shares, int worker) {
  const SampleShares::Range range = shares.range(worker, 10'000);
  return range.last - range.first;
}

TEST(SampleShares, FollowSpeeds) {
  const SampleShares even(3);
  EXPECT_NEAR(samples_of(even, 0), 3333, 10);
  const SampleShares better = even.balanced({1, 1, 2}, 0.03);
  EXPECT_NEAR(samples_of(better, 0), 4000, 20);
  EXPECT_NEAR(samples_of(better, 2), 2000, 20);
  EXPECT_EQ(better.range(0, 10'000).first, 0);
  EXPECT_EQ(better.range(0, 10'000).last, better.range(1, 10'000).first);
  EXPECT_EQ(better.range(2, 10'000).last, 10'000);
  // Seconds are for the present shares: equal times cannot be improved.
  EXPECT_EQ(better.balanced({1, 1.01f, 0.99f}, 0.03), better);
  // The gain may be smaller than the cost of moving.
  EXPECT_EQ(even.balanced({1, 1, 2}, 0.5), even);
}

TEST(SampleShares, LeaveNothingToTheLost) {
  const SampleShares even(3);
  EXPECT_FALSE(even.has_orphans({1, 1, 1}));
  ASSERT_TRUE(even.has_orphans({1, 0, 1}));
  const SampleShares better = even.balanced({1, 0, 1}, 0.03);
  EXPECT_EQ(samples_of(better, 1), 0);
  EXPECT_NEAR(samples_of(better, 0), 5000, 20);
  EXPECT_FALSE(better.has_orphans({1, 0, 1}));
}

}  // namespace
}  // namespace artel::ps
