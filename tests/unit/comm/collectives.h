// Every collective against its naive result; used with threads, processes and all transports.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "artel/comm/group.h"
#include "ranks.h"

namespace artel::comm {

// Element i of rank r: small integers, so sums are exact in any order.
inline float element(int rank, size_t i) { return static_cast<float>((rank * 7 + i * 3) % 23); }

inline std::vector<float> elements(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

inline std::vector<float> sum_of_all(int size, size_t count) {
  std::vector<float> sum(count, 0);
  for (int rank = 0; rank < size; ++rank)
    for (size_t i = 0; i < count; ++i) sum[i] += element(rank, i);
  return sum;
}

// Uneven parts, some of them empty.
inline std::vector<size_t> uneven_sizes(int size, size_t count) {
  std::vector<size_t> sizes;
  for (int rank = 0; rank < size; ++rank) sizes.push_back(rank % 3 == 1 ? 0 : count + rank);
  return sizes;
}

inline std::vector<size_t> in_bytes(std::vector<size_t> sizes) {
  for (size_t& size : sizes) size *= sizeof(float);
  return sizes;
}

inline void check_reductions(Group& group, size_t count, const Call& call) {
  const int rank = group.rank();
  const int size = group.size();
  const std::vector<float> sum = sum_of_all(size, count);

  std::vector<float> data = elements(rank, count);
  group.all_reduce(bytes(data), ElementType::f32, {}, call);
  EXPECT_EQ(data, sum);

  data = elements(rank, count);
  group.all_reduce(bytes(data), ElementType::f32, ReductionKind::max, call);
  for (size_t i = 0; i < count; ++i) {
    float largest = 0;
    for (int r = 0; r < size; ++r) largest = std::max(largest, element(r, i));
    ASSERT_EQ(data[i], largest);
  }

  for (const ReductionKind kind : {ReductionKind::min, ReductionKind::max})
    for (const int holder : {0, size - 1}) {
      data = elements(rank, count);
      if (rank == holder) std::fill(data.begin(), data.end(), std::nanf(""));
      group.all_reduce(bytes(data), ElementType::f32, kind, call);
      for (const float value : data)
        ASSERT_TRUE(std::isnan(value)) << to_string(kind) << ", rank " << holder << " had it";
    }

  for (const int root : {0, size - 1}) {
    const std::vector<float> input = elements(rank, count);
    std::vector<float> output(rank == root ? count : 0);
    group.reduce(std::as_bytes(std::span(input)), bytes(output), ElementType::f32, root, {}, call);
    EXPECT_EQ(output, rank == root ? sum : std::vector<float>{});
    std::vector<float> in_place(input);
    group.reduce(bytes(in_place), bytes(in_place), ElementType::f32, root, {}, call);
    EXPECT_EQ(in_place, rank == root ? sum : input);
  }

  // reduce_scatter with uneven parts, in place and into another buffer.
  const auto sizes = uneven_sizes(size, count);
  std::vector<size_t> offsets(1, 0);
  for (size_t part : sizes) offsets.push_back(offsets.back() + part);
  std::vector<float> input = elements(rank, offsets.back());
  const std::vector<float> whole = sum_of_all(size, offsets.back());
  const std::vector<float> expected(whole.begin() + offsets[rank],
                                    whole.begin() + offsets[rank + 1]);
  std::vector<float> output(sizes[rank]);
  group.reduce_scatter(bytes(input), bytes(output), ElementType::f32, {}, in_bytes(sizes), call);
  EXPECT_EQ(output, expected);
  const auto part =
      bytes(input).subspan(offsets[rank] * sizeof(float), sizes[rank] * sizeof(float));
  group.reduce_scatter(bytes(input), part, ElementType::f32, {}, in_bytes(sizes), call);
  EXPECT_EQ(std::vector<float>(input.begin() + offsets[rank], input.begin() + offsets[rank + 1]),
            expected);
}

inline void check_movements(Group& group, size_t count, const Call& call) {
  const int rank = group.rank();
  const int size = group.size();
  for (int root = 0; root < size; ++root) {
    std::vector<float> data = elements(rank, count);
    group.broadcast(bytes(data), root, call);
    EXPECT_EQ(data, elements(root, count));
  }

  const auto sizes = uneven_sizes(size, count);
  std::vector<size_t> offsets(1, 0);
  for (size_t part : sizes) offsets.push_back(offsets.back() + part);
  const std::vector<float> mine = elements(rank, sizes[rank]);
  std::vector<float> everything;
  for (int r = 0; r < size; ++r) {
    const auto theirs = elements(r, sizes[r]);
    everything.insert(everything.end(), theirs.begin(), theirs.end());
  }

  std::vector<float> gathered(everything.size());
  group.all_gather(std::as_bytes(std::span(mine)), bytes(gathered), in_bytes(sizes), call);
  EXPECT_EQ(gathered, everything);
  std::fill(gathered.begin(), gathered.end(), 0.0f);
  std::copy(mine.begin(), mine.end(), gathered.begin() + offsets[rank]);
  const auto own_part =
      bytes(gathered).subspan(offsets[rank] * sizeof(float), sizes[rank] * sizeof(float));
  group.all_gather(own_part, bytes(gathered), in_bytes(sizes), call);  // in place
  EXPECT_EQ(gathered, everything);

  const int root = size / 2;
  std::vector<float> at_root(rank == root ? everything.size() : 0);
  group.gather(std::as_bytes(std::span(mine)), bytes(at_root), root, in_bytes(sizes), call);
  EXPECT_EQ(at_root, rank == root ? everything : std::vector<float>{});
  std::vector<float> back(sizes[rank]);
  group.scatter(bytes(at_root), bytes(back), root, in_bytes(sizes), call);
  EXPECT_EQ(back, mine);

  // Rank a sends a + b + count elements of value 100 a + b to rank b.
  std::vector<size_t> to(size), from(size);
  std::vector<float> input, expected;
  for (int peer = 0; peer < size; ++peer) {
    to[peer] = from[peer] = rank + peer + count;
    input.insert(input.end(), to[peer], static_cast<float>(100 * rank + peer));
    expected.insert(expected.end(), from[peer], static_cast<float>(100 * peer + rank));
  }
  std::vector<float> output(expected.size());
  group.all_to_all(bytes(input), in_bytes(to), bytes(output), in_bytes(from), call);
  EXPECT_EQ(output, expected);
  group.barrier(call);
}

// Unequal parts, one of them empty; the rest of the output stays as it is.
inline void check_lane_scatter(Group& group, const LaneLayout& layout,
                               std::span<std::byte* const> partials,
                               const std::vector<float>& expected, const Call& call) {
  const size_t count = expected.size(), size = group.size();
  std::vector<size_t> sizes(size, 0);
  size_t left = count;
  for (size_t r = 1; r < size; ++r) left -= sizes[r] = std::min(left, count * r / (size * size));
  sizes[0] = left;
  size_t begin = 0;
  for (int r = 0; r < group.rank(); ++r) begin += sizes[r];
  const size_t end = begin + sizes[group.rank()];
  for (size_t& each : sizes) each *= sizeof(float);
  std::vector<float> output(count, -1);
  group.lane_reduce_scatter(layout, partials, bytes(output), ElementType::f32, sizes, call);
  for (size_t i = 0; i < count; ++i)
    ASSERT_EQ(output[i], i >= begin && i < end ? expected[i] : -1) << i;
}

// The canonical sum must have the bits of the tree, on any division of the lanes.
inline void check_lanes(Group& group, int lanes, size_t count, const Call& call) {
  std::vector<std::vector<float>> all;
  std::vector<const std::byte*> pointers;
  for (int lane = 0; lane < lanes; ++lane) {
    auto& values = all.emplace_back(count);
    for (size_t i = 0; i < count; ++i) values[i] = 1.0f / static_cast<float>(lane * 31 + i + 1);
    pointers.push_back(reinterpret_cast<const std::byte*>(values.data()));
  }
  std::vector<float> expected(count);
  add_lanes({0, lanes}, pointers, reinterpret_cast<std::byte*>(expected.data()), ElementType::f32,
            count);
  const LaneLayout layout = LaneLayout::even(lanes, group.size());
  for (const bool each_lane : {true, false}) {
    std::vector<std::vector<float>> own;
    const LaneRange range = layout.range(group.rank());
    if (each_lane) {
      own.assign(all.begin() + range.first, all.begin() + range.last);
    } else {
      for (const LaneRange& subtree : layout.subtrees(group.rank())) {
        own.emplace_back(count);
        add_lanes(subtree, std::span(pointers).subspan(subtree.first, subtree.size()),
                  reinterpret_cast<std::byte*>(own.back().data()), ElementType::f32, count);
      }
    }
    std::vector<std::byte*> partials;
    for (auto& values : own) partials.push_back(reinterpret_cast<std::byte*>(values.data()));
    std::vector<float> beside(count);
    std::vector<float>& output = own.empty() ? beside : own[0];
    if (!each_lane) check_lane_scatter(group, layout, partials, expected, call);
    group.lane_reduce(layout, partials, bytes(output), ElementType::f32, {}, each_lane, call);
    EXPECT_EQ(output, expected) << lanes << " lanes on " << group.size() << " ranks";
  }
}

inline void check_every_collective(Group& group, Algorithm algorithm) {
  const size_t size = group.size();
  for (const size_t count : {size_t{0}, size_t{1}, size - 1, size + 1, size_t{70'001}}) {
    SCOPED_TRACE(fmt::format("{} by {}, {} ranks, {} elements", group.transport(),
                             to_string(algorithm), size, count));
    const Call call{.timeout = 60, .algorithm = algorithm};
    check_reductions(group, count, call);
    check_movements(group, count, call);
    for (const int lanes : {1, 3, 8, 12}) check_lanes(group, lanes, count, call);
  }
}

}  // namespace artel::comm
