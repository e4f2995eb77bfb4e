#include "artel/ps/key_ranges.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

TEST(ShardMap, CoversAllKeysEvenly) {
  for (const uint64_t keys : {0, 1, 15, 16, 17, 1000, 54890})
    for (const int servers : {1, 2, 3, 7}) {
      const ShardMap map = ShardMap::even(keys, servers);
      EXPECT_EQ(map.keys(), keys);
      for (int server = 0; server < servers; ++server)
        EXPECT_LE(map.range(server).size(), keys / servers + 32) << keys << " keys";
    }
}

TEST(ShardMap, FindsTheServerOfAKey) {
  const ShardMap map = ShardMap::even(1000, 3);
  for (uint64_t key = 0; key < 1000; ++key) {
    const KeyRange& range = map.range(map.server_of(key));
    EXPECT_TRUE(key >= range.first && key < range.last);
  }
  EXPECT_THROW(map.server_of(1000), Error);
}

TEST(ShardMap, CutsOnlyWhereItMay) {
  const std::vector<uint64_t> allowed = {0, 100, 520, 560, 900};
  const ShardMap map = ShardMap::between(1000, 2, allowed);
  EXPECT_EQ(map.range(0), (KeyRange{0, 520}));
  EXPECT_EQ(map.range(1), (KeyRange{520, 1000}));
  EXPECT_EQ(ShardMap::between(1000, 3, {}).range(0).size(), 1000u);
}

TEST(ShardMap, RefusesGaps) {
  EXPECT_THROW(ShardMap({{0, 4}, {5, 8}}), Error);
  EXPECT_THROW(ShardMap::even(10, 0), Error);
}

}  // namespace
}  // namespace artel::ps
