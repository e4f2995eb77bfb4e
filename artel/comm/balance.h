// Distributes work according to the measured speed of each worker.
#pragma once

#include <vector>

#include "artel/comm/group.h"

namespace artel::comm {

// A layout in which all workers would finish at about the same time, given the seconds that each
// took for one lane. Each keeps at least one lane, except those with infinite seconds, which are
// gone. The old layout is kept unless the slowest worker would gain more than `least_gain` of its
// time, so noise does not move lanes back and forth. A pure function: all workers compute the same
// result.
LaneLayout balanced_lanes(const LaneLayout& old, const std::vector<double>& seconds,
                          double least_gain = 0.05);

}  // namespace artel::comm
