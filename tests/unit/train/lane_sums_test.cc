#include "artel/train/step/lane_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "artel/base/random.h"

namespace artel {
namespace {

constexpr size_t kFloats = 37;

std::vector<float> numbers_of(int lane) {
  std::vector<float> values(kFloats);
  Random random{static_cast<uint64_t>(lane)};
  for (float& value : values) value = random.normal();
  return values;
}

// The canonical sum of a subtree.
std::vector<float> canonical(comm::LaneRange subtree) {
  if (subtree.size() == 1) return numbers_of(subtree.first);
  const int middle = comm::lane_split(subtree);
  std::vector<float> left = canonical({subtree.first, middle});
  const std::vector<float> right = canonical({middle, subtree.last});
  for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

TEST(LaneSums, DoNotDependOnTheOrderInWhichLanesFinish) {
  ThreadPool pool(1);
  int allocated = 0;
  for (const int lanes : {1, 2, 5, 8, 13})
    for (const comm::LaneRange range :
         {comm::LaneRange{0, lanes}, comm::LaneRange{lanes / 3, lanes}}) {
      LaneSums sums(lanes, [&] {
        ++allocated;
        return cpu().allocate(kFloats * sizeof(float));
      });
      std::vector<int> order(static_cast<size_t>(range.size()));
      std::iota(order.begin(), order.end(), range.first);
      for (uint64_t round = 0; round < 10; ++round) {
        sums.clear();
        for (const int lane : order) {
          Memory memory = sums.take();
          const std::vector<float> values = numbers_of(lane);
          std::copy(values.begin(), values.end(), memory.floats().begin());
          sums.add(lane, std::move(memory), pool);
        }
        const std::vector<comm::LaneRange> subtrees = comm::lane_subtrees(lanes, range);
        const std::vector<Memory> partials = sums.partials();
        ASSERT_EQ(partials.size(), subtrees.size());
        for (size_t i = 0; i < subtrees.size(); ++i) {
          const auto* const values = partials[i].floats().data();
          EXPECT_EQ(std::vector<float>(values, values + kFloats), canonical(subtrees[i]));
        }
        Random random{round, static_cast<uint64_t>(lanes)};
        for (size_t i = order.size(); i > 1; --i)
          std::swap(order[i - 1], order[static_cast<size_t>(random.below(i))]);
      }
    }
  // In order, a lane is added at once: memory for a path of the tree is enough.
  allocated = 0;
  LaneSums sums(64, [&] {
    ++allocated;
    return cpu().allocate(kFloats * sizeof(float));
  });
  for (int lane = 0; lane < 64; ++lane) sums.add(lane, sums.take(), pool);
  EXPECT_EQ(allocated, 7);
}

}  // namespace
}  // namespace artel
