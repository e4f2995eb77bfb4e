#include "artel/train/parts/crowding.h"

#include <algorithm>
#include <vector>

namespace artel {

void agree_on_crowding(comm::Group& group, Stepper& stepper, int lanes) {
  const Stepper::Crowding own = stepper.crowding(lanes);
  std::vector<Stepper::Crowding> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "threads"});
  Stepper::Crowding most = own;
  for (const Stepper::Crowding& each : all)
    most = {std::max(most.groups, each.groups), std::max(most.threads, each.threads)};
  stepper.set_most_crowded(most);
}

}  // namespace artel
