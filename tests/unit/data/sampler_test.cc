#include "artel/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "artel/base/error.h"

namespace artel::data {
namespace {

TEST(Permutation, VisitsEverySampleOnce) {
  for (const int64_t size : {1, 2, 3, 5, 64, 65, 1000, 60000}) {
    const Permutation order(size, 42);
    std::vector<int> seen(size);
    for (int64_t i = 0; i < size; ++i) ++seen.at(order(i));
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), size) << size;
  }
}

// Over many keys, each number must land at each position about equally often.
TEST(Permutation, IsFair) {
  constexpr int kSize = 7, kKeys = 14000;
  int counts[kSize][kSize] = {};
  for (uint64_t key = 0; key < kKeys; ++key) {
    const Permutation order(kSize, key);
    for (int i = 0; i < kSize; ++i) ++counts[i][order(i)];
  }
  for (const auto& row : counts)
    for (const int count : row) EXPECT_NEAR(count, kKeys / kSize, 200);
}

TEST(Permutation, LeavesNoLongRuns) {
  const Permutation order(60000, 1);
  int neighbours = 0;
  for (int i = 1; i < 60000; ++i) neighbours += std::abs(order(i) - order(i - 1)) == 1;
  EXPECT_LT(neighbours, 20);  // two are expected
}

TEST(Sampler, EpochsDifferAndSeedsRepeat) {
  const Sampler a(100, {.batch_size = 10, .seed = 1});
  const Sampler b(100, {.batch_size = 10, .seed = 1});
  const Sampler c(100, {.batch_size = 10, .seed = 2});
  EXPECT_EQ(a.samples(0, 0, 100), b.samples(0, 0, 100));
  EXPECT_NE(a.samples(0, 0, 100), a.samples(1, 0, 100));
  EXPECT_NE(a.samples(0, 0, 100), c.samples(0, 0, 100));
}

TEST(Sampler, AnyPartIsTheSameAsInTheWhole) {
  const Sampler sampler(97, {.batch_size = 10});
  const std::vector<int64_t> whole = sampler.samples(3, 0, 97);
  EXPECT_EQ(sampler.samples(3, 40, 45),
            std::vector<int64_t>(whole.begin() + 40, whole.begin() + 45));
}

TEST(Sampler, DropsOrKeepsTheLastBatch) {
  const Sampler drop(25, {.batch_size = 10});
  EXPECT_EQ(drop.batches_per_epoch(), 2);
  EXPECT_EQ(drop.samples_per_epoch(), 20);
  const Sampler keep(25, {.batch_size = 10, .last_batch = LastBatch::keep});
  EXPECT_EQ(keep.batches_per_epoch(), 3);
  EXPECT_EQ(keep.samples_per_epoch(), 25);
}

TEST(Sampler, RefusesTheImpossible) {
  EXPECT_THROW(Sampler(5, {.batch_size = 10}), Error);
  EXPECT_THROW(Sampler(5, {.batch_size = 0}), Error);
  EXPECT_THROW(Sampler(5, {.batch_size = 5}).samples(0, 3, 6), Error);
}

}  // namespace
}  // namespace artel::data
