#include "artel/train/loop/clocks.h"

#include <gtest/gtest.h>

#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(Clocks, WorkersOfOneMachineHaveOne) {
  std::vector<ClockReading> readings(3);
  on_workers(3,
             [&](int rank, Cluster& cluster) { readings[rank] = compare_clocks(cluster.group()); });
  EXPECT_EQ(readings[0].ahead, 0);
  for (const ClockReading& reading : readings) {
    EXPECT_GT(reading.error, 0);
    EXPECT_LE(std::abs(reading.ahead), reading.error);
    EXPECT_GE(readings[0].error, reading.error);
  }
  EXPECT_EQ(compare_clocks(nullptr).error, 0);
}

TEST(Clocks, DriftEvenlyBetweenTwoReadings) {
  const ClockReading first = {.at = 100, .ahead = 5}, last = {.at = 200, .ahead = 7};
  EXPECT_DOUBLE_EQ(at_worker_0(100, first, last), 95);
  EXPECT_DOUBLE_EQ(at_worker_0(150, first, last), 144);
  EXPECT_DOUBLE_EQ(at_worker_0(200, first, last), 193);
  EXPECT_DOUBLE_EQ(at_worker_0(90, first, last), 85);
  EXPECT_DOUBLE_EQ(at_worker_0(210, first, last), 203);
  EXPECT_DOUBLE_EQ(at_worker_0(90, last, last), 83);
}

}  // namespace
}  // namespace artel
