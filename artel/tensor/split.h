// How a tensor is cut into shards: along one axis, within each of several equal blocks of it (as
// where queries, keys and values lie side by side). Shards are as even as whole elements allow.
//
//   // The second of three shards of a weight [10, 4], cut along its first axis: [3, 4].
//   const artel::Shape shard = artel::shard_shape({10, 4}, {.axis = 0, .shards = 3}, 1);
#pragma once

#include <cstdint>
#include <vector>

#include "artel/tensor/shape.h"

namespace artel {

struct Split {
  int axis = 0;
  int blocks = 1;
  int shards = 1;  // 1: it is whole

  bool operator==(const Split&) const = default;
};

// A contiguous range of the axis of the whole, and where it begins in its shard.
struct SplitRange {
  int shard = 0;
  int64_t begin = 0, extent = 0;  // of the whole
  int64_t own = 0;                // in the shard
};
// All of them: shard by shard, block by block.
std::vector<SplitRange> ranges_of(const Shape& whole, const Split& split);

Shape shard_shape(const Shape& whole, const Split& split, int shard);
// Elements of the shards before it, one after another.
int64_t shard_begin(const Shape& whole, const Split& split, int shard);

}  // namespace artel
