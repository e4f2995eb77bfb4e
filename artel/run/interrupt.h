// Ctrl-C, once and twice.
#pragma once

#include <csignal>

#include "artel/train/trainer.h"

namespace artel {

// While it lives, the first interrupt or termination signal makes `trainer` stop after its current
// step; the second one ends the process at once. One at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(Trainer& trainer);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  // The signal that came, or 0.
  static int received();

 private:
  struct sigaction previous_interrupt_, previous_terminate_;
};

}  // namespace artel
