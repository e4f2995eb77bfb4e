#include "artel/tensor/split.h"

namespace artel {
namespace {

int64_t bound(const Shape& whole, const Split& split, int shard) {
  return whole[split.axis] / split.blocks * shard / split.shards;
}

}  // namespace

std::vector<SplitRange> ranges_of(const Shape& whole, const Split& split) {
  std::vector<SplitRange> ranges;
  const int64_t block = whole[split.axis] / split.blocks;
  for (int shard = 0; shard < split.shards; ++shard) {
    const int64_t begin = bound(whole, split, shard);
    const int64_t extent = bound(whole, split, shard + 1) - begin;
    for (int b = 0; b < split.blocks; ++b)
      ranges.push_back({shard, b * block + begin, extent, b * extent});
  }
  return ranges;
}

Shape shard_shape(const Shape& whole, const Split& split, int shard) {
  Shape shape = whole;
  shape[split.axis] = split.blocks * (bound(whole, split, shard + 1) - bound(whole, split, shard));
  return shape;
}

int64_t shard_begin(const Shape& whole, const Split& split, int shard) {
  if (whole[split.axis] == 0) return 0;
  return whole.elements() / whole[split.axis] * split.blocks * bound(whole, split, shard);
}

}  // namespace artel
