// Which lanes each worker has: contiguous, in rank order, moved to whoever is faster. The bits of
// an exact step do not depend on it.
#pragma once

#include "artel/comm/group.h"
#include "artel/data/loader.h"

namespace artel {

class Division {
 public:
  // Evenly at first. `group` may be null: one worker. Both are borrowed. Throws if there are fewer
  // lanes than workers.
  Division(comm::Group* group, int lanes, data::Loader& loader);

  const comm::LaneLayout& layout() const { return layout_; }
  comm::LaneRange own() const { return layout_.range(rank_); }
  // This worker's part of a batch of so many samples.
  double own_share(int64_t samples) const;
  // From the next batch on.
  void set(comm::LaneLayout layout);

  // What this worker has computed since lanes were last divided.
  void computed(double seconds) { computing_ += seconds; }
  // The seconds that a lane has taken here since then; begins anew.
  double take_seconds_of_a_lane();
  // A collective call: gives each worker lanes in proportion to its measured speed, once that says
  // more than the moment.
  void balance(int64_t step);

  // Workers compare their speeds every so many steps.
  static constexpr int64_t kBalanceEvery = 16;

 private:
  comm::Group* group_;
  data::Loader& loader_;
  int rank_;
  comm::LaneLayout layout_;
  double computing_ = 0;
};

}  // namespace artel
