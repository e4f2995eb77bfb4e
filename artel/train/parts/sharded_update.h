// The update with sharded optimizer state (train/parts/shards.h): each worker updates its part and
// sends the new weights to the others.
//
// The bits are those of a single worker, because elements are updated independently, and norms add
// the same terms in the same order. The parts of other workers are reserved address space without
// memory.
#pragma once

#include <functional>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/train/parts/divided_state.h"
#include "artel/train/parts/shards.h"
#include "artel/train/step/stepper.h"

namespace artel {

class ShardedUpdate {
 public:
  // Borrows the stepper, which must have compiled a region. Throws for an optimizer that needs
  // whole parameters.
  ShardedUpdate(const Membership& membership, Stepper& stepper);

  const Shards& shards() const { return shards_; }
  // This worker's ranges of each parameter and state, including shards.
  KeptRanges kept() const;

  // The functions below are collective. Returns the sum of squares of each gradient, in the order
  // of the region's parts; 0 for states. `total` is the region, in which this worker's part is the
  // sum over all lanes.
  std::vector<double> squares(const Memory& total);
  // Updates this worker's part. Calls `done(bucket)` as soon as a bucket is updated.
  void apply(const Memory& total, const Update::Options& options,
             const std::function<void(int bucket)>& done = {});
  // Gathers the weights and states of a bucket on all workers. A worker that already has them
  // passes `keep` = false and only sends. `group` must have the same workers.
  void gather_weights(comm::Group& group, int bucket, bool keep = true);

  // Releases the memory of other workers' parts.
  void forget_weights(int bucket);
  // The weights and states of each worker's part, in this worker's memory.
  std::vector<std::vector<std::span<float>>> weights_of_workers() const;

  // Elements per worker, on average.

 private:
  // Adds the terms over all workers. Each worker passes the terms of its chunks and zeros
  // elsewhere.
  void share(std::span<double> terms);
  std::span<float> weights(const Slice& slice) const;

  Membership membership_;
  Stepper& stepper_;
  Update& update_;
  int rank_;
  Shards shards_;
  std::vector<size_t> first_chunk_;  // of each part, among all chunks; and the total
  comm::SharedBytes staging_;
};

}  // namespace artel
