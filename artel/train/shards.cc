#include "artel/train/shards.h"

#include <algorithm>

#include "artel/optim/norms.h"

namespace artel {

Shards::Shards(const SummedRegion& region, int workers) : workers_(workers) {
  constexpr size_t kChunk = optim::kNormChunk * sizeof(float);
  const std::vector<SummedRegion::Part>& parts = region.parts();
  for (const Bucket& bucket : region.buckets()) {
    const size_t begin = std::max(bucket.offset, region.statistics_bytes());
    const size_t end = bucket.offset + bucket.bytes;
    // The last place at or before `at` where a tensor may be cut.
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

}  // namespace artel
