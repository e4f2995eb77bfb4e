// The division of a tensor into shards along one axis. If the axis consists of several equal
// blocks, such as queries, keys, and values, each block is divided. Shard sizes differ by at most
// one element per block.
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
  int shards = 1;  // 1 means undivided

  bool operator==(const Split&) const = default;
};

// A contiguous range of the axis that belongs to one shard.
struct SplitRange {
  int shard = 0;
  int64_t begin = 0, extent = 0;  // in the whole tensor
  int64_t own = 0;                // begin in the shard
};
// All ranges, ordered by shard and then by block.
std::vector<SplitRange> ranges_of(const Shape& whole, const Split& split);

Shape shard_shape(const Shape& whole, const Split& split, int shard);
// Number of elements in all preceding shards.
int64_t shard_begin(const Shape& whole, const Split& split, int shard);

}  // namespace artel
