// Which lanes each worker of a membership has: contiguous, in rank order, moved to whoever is
// faster. The bits of an exact step do not depend on it.
//
//   artel::data::Loader loader(samples, {});
//   const artel::Division division(cluster.membership(), 8, loader);
//   artel::println("lanes {} to {}", division.own().first, division.own().last);
#pragma once

#include "artel/cluster/membership.h"
#include "artel/data/loader.h"

namespace artel {

class Division {
 public:
  struct Options {
    int sharing = 1;        // workers, neighbours, that work on the same lanes
    bool stand_by = false;  // workers may be without lanes; otherwise too few are an error
  };
  // Evenly at first. The loader is borrowed.
  Division(const Membership& membership, int lanes, data::Loader& loader, Options options);
  Division(const Membership& membership, int lanes, data::Loader& loader)
      : Division(membership, lanes, loader, {}) {}

  const comm::LaneLayout& layout() const { return layout_; }
  comm::LaneRange own() const { return layout_.range(membership_.rank() / sharing_); }
  // This worker's part of a batch of this many samples.
  double own_share(int64_t samples) const;
  // From the next batch on, lanes are divided evenly among these workers, each of which may stand
  // for several.
  void divide_among(const Membership& membership);
  // Where lanes cannot be spread evenly: chooses the workers that have one more such that hosts
  // send each other the fewest partial sums. For results that do not depend on who has which lanes.
  void align();
  // From the next batch on.
  void set(comm::LaneLayout layout);

  // What this worker has computed since lanes were last divided.
  void computed(double seconds) { computing_ += seconds; }
  // The seconds that a lane has taken here since then; resets the count.
  double take_seconds_of_a_lane();
  // A collective call: gives each worker lanes in proportion to its speed, once that has been
  // measured for long enough to mean something.
  void balance(int64_t step);

  // Steps from one comparison of speeds to the next.
  static constexpr int64_t kBalanceEvery = 16;

 private:
  void tell_slowest(int64_t step);

  Membership membership_;
  data::Loader& loader_;
  comm::LaneLayout layout_;
  int sharing_;  // workers of `membership_` with the same lanes
  double computing_ = 0;
  // The slowest worker that the log has named last, and its lanes.
  int told_slowest_ = -1, told_lanes_ = 0;
};

}  // namespace artel
