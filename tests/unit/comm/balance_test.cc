#include "artel/comm/collectives/balance.h"

#include <gtest/gtest.h>

#include <numeric>

#include "artel/comm/collectives/host_lanes.h"

namespace artel::comm {
namespace {

size_t sums_between_hosts(const LaneLayout& layout, const std::vector<int>& hosts) {
  return HostLanes(layout.lanes, layout.ranges(), hosts).tree().nodes().size();
}

TEST(AlignedLanes, KeepHostsToWholeSubtrees) {
  // Two workers on the first host, one on the second: 3 + 3 and 2 lanes need 3 partial sums, 2 + 3
  // and 3 need 4.
  const std::vector<int> hosts = {0, 0, 1};
  const LaneLayout aligned = even_aligned_lanes(8, hosts);
  EXPECT_EQ(sums_between_hosts(aligned, hosts), 3u);
  EXPECT_EQ(sums_between_hosts(LaneLayout::even(8, 3), hosts), 4u);
}

TEST(AlignedLanes, AreAsEvenAsOthersAndNeverNeedMoreSums) {
  for (int lanes = 4; lanes <= 40; ++lanes)
    for (const std::vector<int>& hosts : {std::vector{0, 1, 2}, std::vector{0, 0, 1, 1},
                                          std::vector{0, 0, 0, 1}, std::vector{0, 1, 0}}) {
      const LaneLayout aligned = even_aligned_lanes(lanes, hosts);
      const auto workers = static_cast<int>(hosts.size());
      ASSERT_EQ(std::accumulate(aligned.lanes_of_rank.begin(), aligned.lanes_of_rank.end(), 0),
                lanes);
      for (const int each : aligned.lanes_of_rank) {
        EXPECT_GE(each, lanes / workers);
        EXPECT_LE(each, (lanes + workers - 1) / workers);
      }
      // A host with two runs of workers is cut as two.
      if (hosts == std::vector{0, 1, 0}) continue;
      EXPECT_LE(sums_between_hosts(aligned, hosts),
                sums_between_hosts(LaneLayout::even(lanes, workers), hosts));
    }
}

TEST(BalancedLanes, AreAlignedWhereThatCostsNoTime) {
  // Two hosts; the second is half as fast. 21 or 22 of 32 lanes belong to the first.
  const std::vector<double> seconds = {1.0, 2.0};
  const LaneLayout plain = balanced_lanes(LaneLayout::even(32, 2), seconds);
  const LaneLayout aligned =
      balanced_lanes(LaneLayout::even(32, 2), seconds, 0.05, std::vector{0, 1});
  const auto time = [&](const LaneLayout& layout) {
    return std::max(layout.lanes_of_rank[0] * 1.0, layout.lanes_of_rank[1] * 2.0);
  };
  EXPECT_LE(time(aligned), 1.02 * time(plain));
  EXPECT_LE(sums_between_hosts(aligned, {0, 1}), sums_between_hosts(plain, {0, 1}));
}

TEST(Balance, FindsTheLanesThatGiveEachHostOneSum) {
  const std::vector<int> three = {0, 1, 2};
  EXPECT_EQ(most_host_sums(even_aligned_lanes(8, three), three), 2);
  EXPECT_EQ(lanes_of_single_sums(8, 32, three), 12);
  EXPECT_EQ(most_host_sums(even_aligned_lanes(12, three), three), 1);
  EXPECT_EQ(lanes_of_single_sums(8, 11, three), 0);
  EXPECT_EQ(most_host_sums(even_aligned_lanes(8, std::vector{0, 1}), std::vector{0, 1}), 1);
  const std::vector<int> pairs = {0, 0, 1, 1};
  EXPECT_EQ(most_host_sums(even_aligned_lanes(8, pairs), pairs), 1);
}

}  // namespace
}  // namespace artel::comm
