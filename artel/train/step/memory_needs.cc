#include "artel/train/step/memory_needs.h"

#include <algorithm>

#include "artel/train/parts/mirrors.h"
#include "artel/train/step/stepper.h"

namespace artel {

MemoryNeeds memory_needs(const Program& program, int lanes, int threads, int slots, int workers,
                         const ShardingOptions& sharding) {
  const double sums = Stepper::sums_per_lane(program);
  MemoryNeeds needs = {.lane = step_memory(program),
                       .frames = lanes,
                       .groups = Stepper::side_by_side(lanes, threads, sums),
                       .sums = Stepper::sums_in_memory(lanes, threads, sums)};
  size_t trained = 0;
  for (const GradientSlot& slot : program.plan().gradients)
    if (!slot.is_state) trained += slot.bytes;
  const SummedRegion region(program, {}, lanes, StepperOptions().bucket_bytes);
  std::vector<size_t> buckets;
  for (const Bucket& bucket : region.buckets()) buckets.push_back(bucket.bytes);
  std::sort(buckets.rbegin(), buckets.rend());
  // One bucket is in use while the next one is in flight. Assumes the two largest.
  const size_t two = buckets[0] + (buckets.size() > 1 ? buckets[1] : 0);
  const auto part = [&](size_t all, bool divided) {
    return divided ? all / static_cast<size_t>(workers) : all;
  };
  needs.optimizer = part(trained * static_cast<size_t>(slots), sharding.any());
  const size_t own_gradients = part(needs.lane.gradients, sharding.gradients());
  needs.last_gradients = own_gradients;
  if (sharding.gradients())  // as many parts of other workers stay; two buckets come and go
    needs.last_gradients += std::min(two + own_gradients, needs.lane.gradients - own_gradients);
  else
    needs.others_gradients = needs.lane.gradients - part(needs.lane.gradients, true);
  needs.parameters = needs.lane.parameters - trained + part(trained, sharding.weights());
  if (sharding.any() && workers > 1)
    needs.mirrors = static_cast<size_t>(
        mirror_bytes(static_cast<double>(part(trained, true) + needs.optimizer), true));
  if (sharding.weights()) needs.passing_weights = std::min(two, trained - part(trained, true));
  return needs;
}

}  // namespace artel
