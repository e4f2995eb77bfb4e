// Assigns lanes to the workers of a membership: contiguous ranges in rank order, moved towards
// faster workers. The bits of an exact step do not depend on the assignment.
//
//   artel::data::Loader loader(samples, {});
//   const artel::LanePartition division(cluster.membership(), 8, loader);
//   artel::println("lanes {} to {}", division.own().first, division.own().last);
#pragma once

#include <algorithm>

#include "artel/cluster/membership.h"
#include "artel/data/loader.h"

namespace artel {

class LanePartition {
 public:
  // Starts evenly. `sharing` neighbours work on the same lanes because they share one copy of the
  // network. Borrows the loader.
  LanePartition(const Membership& membership, int lanes, data::Loader& loader, int sharing = 1);

  const comm::LaneLayout& layout() const { return layout_; }
  comm::LaneRange own() const { return layout_.range(membership_.rank() / sharing_); }
  // True if no worker stands by.
  bool all_have_lanes() const;
  // This worker's part of a batch of this many samples.
  double own_share(int64_t samples) const;
  // From the next batch on, divides lanes evenly among these workers, each of which may stand for
  // several.
  void divide_among(const Membership& membership);
  // If lanes cannot be spread evenly, chooses the workers with an additional lane such that
  // hosts exchange the fewest partial sums. For results that do not depend on the assignment.
  void align();
  // Takes effect with the next batch.
  void set(comm::LaneLayout layout);

  // Adds computing time since the last division.
  void computed(double seconds) {
    computing_ += seconds;
    lane_seconds_ += seconds / std::max(1, own().size());
  }
  // This worker's computing seconds per lane, summed over all steps so far.
  double lane_seconds() const { return lane_seconds_; }
  // Computing seconds per lane since the last call; resets the count.
  double take_seconds_of_a_lane();
  // Collective. Gives each worker lanes in proportion to its speed, once that has been measured for
  // long enough.
  void balance(int64_t step);

  // Steps between comparisons of speeds.
  static constexpr int64_t kBalanceEvery = 16;

 private:
  void tell_slowest(int64_t step);

  Membership membership_;
  data::Loader& loader_;
  comm::LaneLayout layout_;
  int sharing_;  // workers of `membership_` with the same lanes
  double computing_ = 0, lane_seconds_ = 0;
  // The slowest worker last named in the log, and its number of lanes.
  int told_slowest_ = -1, told_lanes_ = 0;
};

}  // namespace artel
