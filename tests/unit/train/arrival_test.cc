// The state on its way to newcomers.
#include "artel/train/loop/arrival.h"

#include <gtest/gtest.h>

#include <numeric>

#include "artel/train/parts/divided_state.h"
#include "artel/train/step/exchange.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

TEST(Arrival, NewcomersHaveNoLanes) {
  EXPECT_EQ(lanes_without({false, false, true}, 8).lanes_of_rank, (std::vector{4, 4, 0}));
  EXPECT_EQ(lanes_without({false, true, false, true}, 3).lanes_of_rank,
            (comm::LaneLayout{3, {1, 0, 2, 0}}.lanes_of_rank));
  EXPECT_EQ(lanes_without({false, true}, 1).lanes_of_rank, (std::vector{1, 0}));
}

// Sizes that leave some senders without a piece, and others with a part of one.
TEST(Arrival, EachGetsAllOfIt) {
  const size_t piece = kPieceBytes / sizeof(float);
  for (const std::vector<bool>& late : {std::vector{false, true}, std::vector{false, false, true},
                                        std::vector{false, true, false, true}})
    on_workers(static_cast<int>(late.size()), [&](int rank, Cluster& cluster) {
      std::vector<float> expected(3 * piece + 5), small(7, 3.0F);
      std::iota(expected.begin(), expected.end(), 1.0F);
      std::vector<float> own = expected, own_small = small;
      if (late[rank]) {
        std::ranges::fill(own, 0.0F);
        std::ranges::fill(own_small, 0.0F);
      }
      const Arrival arrival(*cluster.group(), late, {own, std::span<float>(), own_small});
      // The others add up meanwhile.
      int32_t sum = 1;
      cluster.group()->all_reduce(std::as_writable_bytes(std::span(&sum, 1)),
                                  comm::ElementType::i32);
      EXPECT_EQ(sum, static_cast<int32_t>(late.size()));
      arrival.wait();
      EXPECT_EQ(own, expected);
      EXPECT_EQ(own_small, small);
    });
}

TEST(Arrival, ABrokenGroupEndsIt) {
  on_workers(3, [](int rank, Cluster& cluster) {
    std::vector<float> values(10);
    comm::Group& group = *cluster.group();
    if (rank == 1) {
      const comm::Group split = group.split(0);  // it is lost before it has sent anything
      return group.dissolve("lost");
    }
    const Arrival arrival(group, {false, false, true},
                          {std::span(values), std::span(values).first(5)});
    if (rank == 2) {
      EXPECT_THROW(arrival.wait(), Error);
    }
  });
}

// A worker without lanes gets the sums of the others, with the bits that they have.
TEST(Arrival, WhoeverHasNoLanesListens) {
  for (const std::vector<int>& lanes : {std::vector{3, 2, 0}, std::vector{0, 5}})
    on_workers(static_cast<int>(lanes.size()), [&](int rank, Cluster& cluster) {
      const comm::LaneLayout layout = {5, lanes};
      constexpr size_t kFloats = 5000;
      const Bucket bucket = {.offset = 0, .bytes = kFloats * sizeof(float)};
      const auto lane_value = [](int lane, size_t i) {
        return 1.0F / static_cast<float>(1 + lane + 3 * i);
      };
      std::vector<Memory> partials;
      for (const comm::LaneRange& node : layout.subtrees(rank)) {
        std::vector<Memory> sums;
        std::vector<const std::byte*> sources;
        for (int lane = node.first; lane < node.last; ++lane) {
          sums.push_back(allocate_sums(cluster.membership(), bucket.bytes));
          for (size_t i = 0; i < kFloats; ++i) sums.back().floats()[i] = lane_value(lane, i);
          sources.push_back(sums.back().host().data());
        }
        partials.push_back(allocate_sums(cluster.membership(), bucket.bytes));
        comm::add_lanes(node, sources, partials.back().host().data(), comm::ElementType::f32,
                        kFloats);
      }
      Exchange exchange(cluster.membership(), {});
      exchange.begin_step(1, {bucket}, layout);
      if (partials.empty())
        partials.push_back(allocate_sums(cluster.membership(), bucket.bytes));  // only for the sum
      exchange.start(0, bucket, partials);
      const Memory total = exchange.wait(0);
      for (const size_t i : {size_t{0}, size_t{17}, kFloats - 1}) {
        const float left =
            (lane_value(0, i) + lane_value(1, i)) + (lane_value(2, i) + lane_value(3, i));
        EXPECT_EQ(total.floats()[i], left + lane_value(4, i));
      }
    });
}

}  // namespace
}  // namespace artel
