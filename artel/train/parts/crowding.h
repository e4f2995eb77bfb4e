// Workers that run the same kernels in the same order, because they exchange values or weights
// between them, recompute the same values under a memory limit.
#pragma once

#include "artel/comm/group.h"
#include "artel/train/step/stepper.h"

namespace artel {

// Collective. `lanes` is this worker's number of lanes in each step.
void agree_on_crowding(comm::Group& group, Stepper& stepper, int lanes);

}  // namespace artel
