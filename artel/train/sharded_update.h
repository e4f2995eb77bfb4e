// The second half of a step where each worker of a group keeps only a part of what the optimizer
// remembers (train/shards.h): it updates that part, and the others get the new weights from it.
//
// The bits are those of one worker: elements are updated by themselves, and norms are added up from
// the same terms in the same order. Memory of the others' parts is address space without pages.
#pragma once

#include <functional>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/train/divided_state.h"
#include "artel/train/shards.h"
#include "artel/train/stepper.h"

namespace artel {

class ShardedUpdate {
 public:
  // For the region that the stepper has compiled; it is borrowed. Throws for an optimizer that has
  // to see parameters as a whole.
  ShardedUpdate(const Membership& membership, Stepper& stepper);

  const Shards& shards() const { return shards_; }
  // What this worker keeps of each parameter and state, shards of it included.
  KeptRanges kept() const;

  // From here on, collective calls. The sum of the squares of each gradient, in the order of the
  // region's parts; 0 for states. `total` is the region, in which this worker's part is the sum
  // over all lanes.
  std::vector<double> squares(const Memory& total);
  // Updates this worker's part. `done(bucket)` is called as soon as a bucket is.
  void apply(const Memory& total, const Update::Options& options,
             const std::function<void(int bucket)>& done = {});
  // All workers get the weights and states of a bucket; one that does not `keep` them, because it
  // has them, only sends. `group` is one of the same workers.
  void gather_weights(comm::Group& group, int bucket, bool keep = true);

  // Gives back the memory of what other workers keep.
  void forget_weights(int bucket);
  // The weights and states that each worker keeps, in this worker's memory.
  std::vector<std::vector<std::span<float>>> weights_of_workers() const;

  // By this worker, on average.

 private:
  // Adds up terms that each worker has for its own chunks; those of others are zero.
  void share(std::span<double> terms);
  std::span<float> weights(const Slice& slice) const;

  Membership membership_;
  Stepper& stepper_;
  Update& update_;
  int rank_;
  Shards shards_;
  std::vector<size_t> first_chunk_;  // of each part, among those of all; and their number
  comm::SharedBytes staging_;
};

}  // namespace artel
