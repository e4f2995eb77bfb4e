#include "artel/train/parts/shards.h"

#include <algorithm>
#include <functional>

#include "artel/optim/norms.h"

namespace artel {

Shards::Shards(const SummedRegion& region, int workers) : workers_(workers) {
  constexpr size_t kChunk = optim::kNormChunk * sizeof(float);
  const std::vector<SummedRegion::Part>& parts = region.parts();
  for (const Bucket& bucket : region.buckets()) {
    const size_t begin = std::max(bucket.offset, region.statistics_bytes());
    const size_t end = bucket.offset + bucket.bytes;
    // The last position at or before `at` where a tensor may be cut.
    const auto nearest = [&](size_t at) {
      size_t cut = begin;
      for (const SummedRegion::Part& part : parts)
        if (part.offset >= begin && part.offset <= at)
          cut = part.offset + (at - part.offset) / kChunk * kChunk;
      return cut;
    };
    std::vector<size_t>& cuts = cuts_.emplace_back();
    for (int worker = 0; worker < workers; ++worker)
      cuts.push_back(nearest(begin + (end - begin) / workers * worker));
    cuts.push_back(end);
    for (int worker = 0; worker < workers; ++worker) {
      std::vector<Slice>& slices = slices_.emplace_back();
      for (size_t i = 0; i < parts.size(); ++i) {
        const size_t from = std::max(cuts[worker], parts[i].offset);
        const size_t to = std::min(cuts[worker + 1], parts[i].offset + parts[i].bytes);
        if (from < to)
          slices.push_back(
              {i, (from - parts[i].offset) / sizeof(float), (to - from) / sizeof(float)});
      }
    }
  }
}

std::vector<bool> Shards::staying(int worker) const {
  std::vector<size_t> theirs, largest;
  size_t own = 0;
  for (int bucket = 0; bucket < buckets(); ++bucket) {
    const std::span<const size_t> cut = cuts(bucket);
    const size_t mine = cut[worker + 1] - cut[worker];
    own += mine;
    theirs.push_back(cut.back() - cut.front() - mine);
    largest.push_back(static_cast<size_t>(bucket));
  }
  std::ranges::stable_sort(largest, std::greater(), [&](size_t bucket) { return theirs[bucket]; });
  size_t left = own;
  std::vector<bool> stay(theirs.size());
  for (const size_t bucket : largest)
    if (theirs[bucket] <= left) {
      stay[bucket] = true;
      left -= theirs[bucket];
    }
  return stay;
}

}  // namespace artel
