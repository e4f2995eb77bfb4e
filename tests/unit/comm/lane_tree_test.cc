#include "artel/comm/collectives/lane_tree.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/random.h"

namespace artel::comm {
namespace {

TEST(LaneTree, SplitsAtTheLargestPowerOfTwo) {
  EXPECT_EQ(lane_split({0, 2}), 1);
  EXPECT_EQ(lane_split({0, 8}), 4);
  EXPECT_EQ(lane_split({0, 7}), 4);
  EXPECT_EQ(lane_split({4, 7}), 6);
}

TEST(LaneTree, AnyRangeIsAFewWholeSubtrees) {
  EXPECT_EQ(lane_subtrees(8, {0, 4}), (std::vector<LaneRange>{{0, 4}}));
  EXPECT_EQ(lane_subtrees(8, {1, 7}), (std::vector<LaneRange>{{1, 2}, {2, 4}, {4, 6}, {6, 7}}));
  EXPECT_EQ(lane_subtrees(8, {3, 3}), std::vector<LaneRange>{});
  EXPECT_THROW(lane_subtrees(8, {3, 9}), Error);
}

std::vector<float> noise(int lane, size_t count) {
  Random random{7, static_cast<uint64_t>(lane)};
  std::vector<float> values(count);
  for (float& value : values) value = random.normal() * 1e3f + random.normal();
  return values;
}

// The tree by the definition, one element at a time.
float naive(const std::vector<std::vector<float>>& lanes, LaneRange node, size_t i) {
  if (node.size() == 1) return lanes[node.first][i];
  const int middle = lane_split(node);
  return naive(lanes, {node.first, middle}, i) + naive(lanes, {middle, node.last}, i);
}

TEST(LaneTree, TheSumHasTheSameBitsForEverySplitIntoWorkers) {
  constexpr size_t kCount = 1500;  // more than one block
  for (const int lanes : {1, 2, 3, 5, 8, 12}) {
    std::vector<std::vector<float>> data;
    for (int lane = 0; lane < lanes; ++lane) data.push_back(noise(lane, kCount));
    for (int workers = 1; workers <= lanes; ++workers) {
      std::vector<LaneRange> nodes;
      std::vector<std::vector<float>> sums;
      for (int worker = 0; worker < workers; ++worker)
        for (const LaneRange& subtree : lane_subtrees(lanes, even_lanes(lanes, workers, worker))) {
          std::vector<const std::byte*> buffers;
          for (int lane = subtree.first; lane < subtree.last; ++lane)
            buffers.push_back(reinterpret_cast<const std::byte*>(data[lane].data()));
          sums.emplace_back(kCount);
          add_lanes(subtree, buffers, reinterpret_cast<std::byte*>(sums.back().data()),
                    ElementType::f32, kCount);
          nodes.push_back(subtree);
        }
      std::vector<const std::byte*> partials;
      for (const auto& sum : sums)
        partials.push_back(reinterpret_cast<const std::byte*>(sum.data()));
      std::vector<float> total(kCount);
      std::byte* const target = reinterpret_cast<std::byte*>(total.data());
      LaneTree(lanes, nodes).add(partials, {&target, 1}, ElementType::f32, kCount);
      for (size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(total[i], naive(data, {0, lanes}, i)) << lanes << " lanes, " << workers;
    }
  }
}

TEST(LaneTree, NodesMustCoverTheTree) {
  EXPECT_THROW(LaneTree(4, {{0, 2}, {3, 4}}), Error);
  EXPECT_THROW(LaneTree(4, {{0, 2}, {2, 4}, {4, 5}}), Error);
}

}  // namespace
}  // namespace artel::comm
