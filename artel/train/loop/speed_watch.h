// Detects workers that become slower or faster during training. Internal to train.
#pragma once

#include <vector>

#include "artel/base/time.h"
#include "artel/comm/group.h"

namespace artel {

// Compares each worker's computing time with its initial one, over windows of at least a second and
class SpeedWatch {
 public:
  // `window` is the minimum length of a window in seconds.
  explicit SpeedWatch(double window = 1) : window_(window) {}
  // Collective, after each step. `lane_seconds` is this worker's computing time per lane, summed
  // over all steps. Returns true on all workers if the speed of one has changed by half.
  bool has_changed(comm::Group& group, int64_t step, double lane_seconds);
  // Accepts the present speeds as usual, because the change was not worth acting on. The next
  // change must last twice as long.
  void accept();

 private:
  const double window_;
  std::vector<double> usual_;  // usual seconds per lane of each worker; empty until measured
  bool warm_ = false;          // the first window is over
  int changed_ = 0;            // changed windows in a row
  int patience_ = 2;           // changed windows needed
  int64_t first_step_ = -1;    // the present window begins after this step
  double lane_seconds_ = 0;    // at the beginning of the window
  Clock::time_point began_;
};

}  // namespace artel
