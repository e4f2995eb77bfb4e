// Distributes lanes over workers: evenly, or according to the measured speed of each worker.
#pragma once

#include <span>
#include <vector>

#include "artel/comm/group.h"

namespace artel::comm {

// A layout in which all workers finish at about the same time, given the seconds that each took for
// one lane. Workers with infinite seconds are gone; all others keep at least one lane. Returns the
// old layout unless the slowest worker would save more than the share `least_gain` of its time, so
// that noise does not move lanes back and forth. If `hosts` has the host of each worker, the layout
// is aligned (see aligned_lanes). A pure function, so all workers compute the same result.
LaneLayout balanced_lanes(const LaneLayout& old, const std::vector<double>& seconds,
                          double least_gain = 0.05, std::span<const int> hosts = {});

// The number of lanes that a worker may have.
struct LaneLimits {
  int least = 0, most = 0;
};

// The layout within the limits in which hosts exchange the fewest partial sums, then ranks inside
// hosts the fewest. Ties are broken by the distance from `wanted`. Neighbours with the same host
// number count as one host.
LaneLayout aligned_lanes(const LaneLayout& wanted, std::span<const LaneLimits> limits,
                         std::span<const int> hosts);

// The largest number of partial sums that a host sends to the others in an exact sum.
int most_host_sums(const LaneLayout& layout, std::span<const int> hosts);

// The smallest number of lanes above `lanes`, up to `most`, that gives all ranks equally many lanes
// and each host a single partial sum; 0 if no number does.
int lanes_of_single_sums(int lanes, int most, std::span<const int> hosts);

// Spread evenly: some workers may have one lane more than others, where that is aligned best.
LaneLayout even_aligned_lanes(int lanes, std::span<const int> hosts);

}  // namespace artel::comm
