// Which worker keeps which part of what is summed over lanes, where each keeps only a part: of
// every bucket about as much as the others.
//
// Tensors are cut between the chunks in which norms are formed (optim/norms.h), so that norms have
// the bits of one worker. A pure function of the region and the number of workers.
#pragma once

#include <span>
#include <vector>

#include "artel/train/summed_region.h"

namespace artel {

class Shards {
 public:
  Shards() = default;
  Shards(const SummedRegion& region, int workers);

  int workers() const { return workers_; }
  int buckets() const { return static_cast<int>(cuts_.size()); }
  // Where the workers' parts of a bucket begin, and the last one ends: bytes of the region. The
  // statistics before them belong to all.
  std::span<const size_t> cuts(int bucket) const { return cuts_[bucket]; }
  // Of each bucket: whether gradients of parts that others keep stay in a worker's memory between
  // steps, instead of going back to the system, which would have to clear their pages again. Those
  // of the largest buckets do, together at most as much as the worker's own part.
  std::vector<bool> staying(int worker) const;
  // What a worker keeps of a bucket, in order.
  std::span<const Slice> of(int worker, int bucket) const {
    return slices_[static_cast<size_t>(bucket) * workers_ + worker];
  }

 private:
  int workers_ = 1;
  std::vector<std::vector<size_t>> cuts_;   // by bucket
  std::vector<std::vector<Slice>> slices_;  // by bucket and worker
};

}  // namespace artel
