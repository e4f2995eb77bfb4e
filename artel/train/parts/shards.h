// The division of the summed region among workers: each holds an approximately equal part of every
// bucket.
//
// Tensors are cut between the chunks of norms (optim/norms.h), so that norms have the bits of a
// single worker. A pure function of the region and the number of workers.
#pragma once

#include <span>
#include <vector>

#include "artel/train/step/summed_region.h"

namespace artel {

class Shards {
 public:
  Shards() = default;
  Shards(const SummedRegion& region, int workers);

  int workers() const { return workers_; }
  int buckets() const { return static_cast<int>(cuts_.size()); }
  // Byte offsets in the region of the workers' parts of a bucket, and the end of the last one. The
  // statistics before them belong to all.
  std::span<const size_t> cuts(int bucket) const { return cuts_[bucket]; }
  // For each bucket: true if gradients of other workers' parts stay in this worker's memory between
  // steps, instead of being returned to the system, which would have to clear their pages again.
  // True for the largest buckets, together at most as large as the worker's own part.
  std::vector<bool> staying(int worker) const;
  // A worker's slices of a bucket, in order.
  std::span<const Slice> of(int worker, int bucket) const {
    return slices_[static_cast<size_t>(bucket) * workers_ + worker];
  }

 private:
  int workers_ = 1;
  std::vector<std::vector<size_t>> cuts_;   // by bucket
  std::vector<std::vector<Slice>> slices_;  // by bucket and worker
};

}  // namespace artel
