// Distributes lanes over workers: evenly, or according to the measured speed of each worker.
#pragma once

#include <span>
#include <vector>

#include "artel/comm/group.h"

namespace artel::comm {

// A layout in which all workers would finish at about the same time, given the seconds that each
// took for one lane. Each keeps at least one lane, except those with infinite seconds, which are
// gone. The old layout is kept unless the slowest worker would gain more than `least_gain` of its
// time, so noise does not move lanes back and forth. If `hosts` gives the host number of each
// worker, the layout is aligned: see aligned_lanes. A pure function: all workers compute the same
// result.
LaneLayout balanced_lanes(const LaneLayout& old, const std::vector<double>& seconds,
                          double least_gain = 0.05, std::span<const int> hosts = {});

// The number of lanes that a worker may have.
struct LaneLimits {
  int least = 0, most = 0;
};

// Of all layouts within the limits, the one in which hosts have to send the fewest partial sums
// between them, then the fewest inside them; of several, the one nearest to `wanted`. Neighbours
// with the same host number count as one host.
LaneLayout aligned_lanes(const LaneLayout& wanted, std::span<const LaneLimits> limits,
                         std::span<const int> hosts);

// Spread evenly: some workers may have one lane more than others, where that is aligned best.
LaneLayout even_aligned_lanes(int lanes, std::span<const int> hosts);

}  // namespace artel::comm
