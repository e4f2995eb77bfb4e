#include "artel/train/memory_needs.h"

#include <algorithm>

#include "artel/train/mirrors.h"
#include "artel/train/stepper.h"

namespace artel {

MemoryNeeds memory_needs(const Program& program, int lanes, int threads, int slots, int workers,
                         const ShardingOptions& sharding) {
  MemoryNeeds needs = {.lane = step_memory(program),
                       .frames = lanes,
                       .sums = Stepper::sums_in_memory(lanes, threads)};
  size_t trained = 0;
  for (const GradientSlot& slot : program.plan().gradients)
    if (!slot.is_state) trained += slot.bytes;
  const SummedRegion region(program, {}, StepperOptions().bucket_bytes);
  std::vector<size_t> buckets;
  for (const Bucket& bucket : region.buckets()) buckets.push_back(bucket.bytes);
  std::sort(buckets.rbegin(), buckets.rend());
  // One is used and the next one is on its way; the largest stay longest.
  const size_t two = buckets[0] + (buckets.size() > 1 ? buckets[1] : 0);
  const auto part = [&](size_t all, bool divided) {
    return divided ? all / static_cast<size_t>(workers) : all;
  };
  needs.optimizer = part(trained * static_cast<size_t>(slots), sharding.any());
  const size_t own_gradients = part(needs.lane.gradients, sharding.gradients());
  needs.last_gradients = own_gradients;
  if (sharding.gradients())  // of those of others, as many stay; two buckets come and go
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
