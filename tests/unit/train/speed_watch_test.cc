// A worker that becomes slower or faster is noticed by all, a single slow moment is not.
#include "artel/train/loop/speed_watch.h"

#include <gtest/gtest.h>

#include "artel/train/lane_partition.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(SpeedWatch, NoticesAChangeThatLasts) {
  // The computing time of a step on the last worker, by window, beginning with the warm-up.
  const std::vector<double> computing = {0.5, 0.1, 0.1, 0.9, 0.12, 0.9, 0.9};
  on_workers(3, [&](int rank, Cluster& cluster) {
    SpeedWatch watch(0);
    double sum = 0;
    int64_t step = 0;
    std::vector<bool> noticed;
    const auto end_window = [&](double seconds) {
      sum += LanePartition::kBalanceEvery * (rank == 2 ? seconds : 0.1);
      step += LanePartition::kBalanceEvery;
      return watch.has_changed(*cluster.group(), step, sum);
    };
    end_window(0.1);
    for (const double seconds : computing) noticed.push_back(end_window(seconds));
    EXPECT_EQ(noticed, (std::vector<bool>{false, false, false, false, false, false, true}));
  });
}

TEST(SpeedWatch, ShortWindowsAndStepsBetweenThemSayNothing) {
  on_workers(2, [&](int, Cluster& cluster) {
    SpeedWatch watch(1000);
    for (int64_t step = 1; step < 10 * LanePartition::kBalanceEvery; ++step)
      EXPECT_FALSE(watch.has_changed(*cluster.group(), step, static_cast<double>(step * step)));
  });
}

}  // namespace
}  // namespace artel
