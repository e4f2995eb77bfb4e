// Recent states of a worker that does not report. If it takes over from worker 0, it rewrites the
// last metrics, which may not have reached the disk.
#pragma once

#include <cstdint>
#include <deque>

#include "artel/base/time.h"
#include "artel/run/report/report.h"
#include "artel/train/trainer.h"

namespace artel {

class RecentStates {
 public:
  // Keeps the states of the last `seconds`. Metrics are written once a second unless steps are
  // slow.
  explicit RecentStates(double seconds = 10) : seconds_(seconds) {}

  // Adds the state after a step or, if `epoch` is set, after the end of its epoch.
  void add(const TrainingState& state, bool epoch);
  // Drops the states that are already in the file, up to step `written`, and returns the step after
  // which the file continues. The last step is written again, because its epoch may have ended.
  int64_t continue_after(int64_t finished, int64_t written);
  // Writes the states to the report and clears them; this worker reports from now on. Epoch lines
  // up to step `printed` are not printed again.
  void tell(RunReport& report, int64_t printed);

 private:
  struct Kept {
    Clock::time_point since;
    bool epoch;
    TrainingState state;
  };
  double seconds_;
  std::deque<Kept> states_;
};

}  // namespace artel
