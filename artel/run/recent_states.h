// What a worker that does not report keeps, in case it has to take over from one whose last lines
// of metrics may not have reached the disk.
#pragma once

#include <cstdint>
#include <deque>

#include "artel/base/time.h"
#include "artel/run/report.h"
#include "artel/train/trainer.h"

namespace artel {

class RecentStates {
 public:
  // Metrics are written once a second, if steps are not slow.
  explicit RecentStates(double seconds = 10) : seconds_(seconds) {}

  // After a step, or (`epoch`) after what was due at the end of its epoch.
  void add(const TrainingState& state, bool epoch);
  // Drops the states whose lines are in the file already, up to step `written`, and returns the
  // step after which the file is continued. The last step is written again: its epoch may have
  // ended, too.
  int64_t continue_after(int64_t finished, int64_t written);
  // Writes them to the report, and forgets them: from here on this worker reports. The lines of
  // epochs up to step `printed` are not printed again.
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
