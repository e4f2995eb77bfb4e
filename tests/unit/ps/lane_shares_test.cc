#include "artel/ps/lane_shares.h"

#include <gtest/gtest.h>

namespace artel::ps {
namespace {

using Lanes = std::vector<int>;
using Changes = std::map<int64_t, Lanes>;

bool present(int) { return true; }

TEST(LaneShares, TheFirstToAskDecidesForAll) {
  LaneShares shares(4, 2);
  EXPECT_EQ(shares.from(16, 0, 1.0, present), (Lanes{2, 2})) << "nothing is known of worker 1";
  EXPECT_EQ(shares.from(16, 1, 3.0, present), (Lanes{2, 2}));
  EXPECT_EQ(shares.from(32, 0, 1.0, present), (Lanes{3, 1}));
  EXPECT_EQ(shares.from(32, 1, 1.0, present), (Lanes{3, 1}));
}

TEST(LaneShares, LostWorkersGetNone) {
  LaneShares shares(4, 2);
  EXPECT_EQ(shares.from(16, 0, 1.0, [](int worker) { return worker == 0; }), (Lanes{4, 0}));
}

TEST(LaneShares, TellsChangesSinceAnIteration) {
  LaneShares shares(4, 2);
  EXPECT_TRUE(shares.since(0).empty());
  shares.from(16, 0, 1.0, present);
  shares.from(16, 1, 3.0, present);
  shares.from(32, 0, 1.0, present);
  shares.from(48, 0, 1.0, present);
  EXPECT_EQ(shares.since(0), (Changes{{16, {2, 2}}, {32, {3, 1}}}));
  EXPECT_EQ(shares.since(31), (Changes{{16, {2, 2}}, {32, {3, 1}}}));
  EXPECT_EQ(shares.since(40), (Changes{{32, {3, 1}}}));
  EXPECT_EQ(shares.since(100), (Changes{{48, {3, 1}}}));
}

}  // namespace
}  // namespace artel::ps
