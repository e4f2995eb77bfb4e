#include "artel/train/lane_count.h"

#include <gtest/gtest.h>

namespace artel {
namespace {

TEST(LaneCount, DefaultsFollowTheBatch) {
  for (const auto& [batch, lanes] :
       {std::pair{1, 1}, {2, 2}, {3, 2}, {6, 4}, {8, 8}, {12, 8}, {64, 8}, {4096, 8}})
    EXPECT_EQ(default_lanes(batch, false), lanes) << batch;
}

TEST(LaneCount, BatchNormHas32SamplesInEachLane) {
  for (const auto& [batch, lanes] :
       {std::pair{1, 1}, {63, 1}, {64, 2}, {128, 4}, {255, 4}, {256, 8}, {4096, 8}})
    EXPECT_EQ(default_lanes(batch, true), lanes) << batch;
}

TEST(LaneCount, WorkersDoNotMatterUpToTheLanes) {
  for (const int workers : {1, 2, 3, 7, 8}) {
    const LaneCount count = lanes_of_new_run({.batch = 64, .workers = workers});
    EXPECT_EQ(count.lanes, 8) << workers;
    EXPECT_FALSE(count.raised()) << workers;
  }
  EXPECT_EQ(lanes_of_new_run({.asked = 5, .batch = 64, .workers = 3}).lanes, 5);
}

TEST(LaneCount, MoreWorkersRaiseThemToAPowerOfTwo) {
  const LaneCount count = lanes_of_new_run({.batch = 64, .workers = 9});
  EXPECT_EQ(count.lanes, 16);
  EXPECT_TRUE(count.raised());
  EXPECT_EQ(raised_lanes_text(count, 9),
            "16 lanes instead of 8, because the run has 9 workers; its bits differ from those of "
            "runs with fewer workers");
  EXPECT_EQ(lanes_of_new_run({.batch = 64, .batch_norm = true, .workers = 3}).lanes, 4);
  EXPECT_EQ(lanes_of_new_run({.asked = 2, .batch = 64, .workers = 3}).lanes, 4);
  EXPECT_EQ(lanes_of_new_run({.batch = 12, .workers = 10}).lanes, 12);  // a sample for each
  EXPECT_EQ(lanes_of_new_run({.batch = 4, .workers = 6}).lanes, 6);     // refused later
}

TEST(LaneCount, WorkersOfACopyOfTheNetworkShareLanes) {
  EXPECT_EQ(lanes_of_new_run({.batch = 64, .workers = 16, .sharing = 2}).lanes, 8);
  EXPECT_EQ(lanes_of_new_run({.batch = 64, .workers = 32, .sharing = 2}).lanes, 16);
}

}  // namespace
}  // namespace artel
