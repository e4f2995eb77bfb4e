// Ctrl-C, once and twice.
#pragma once

#include <csignal>

#include "artel/train/trainer.h"

namespace artel {

// While it lives, interrupt and termination signals go to the handler; SIG_IGN: to nobody.
class HandleSignals {
 public:
  explicit HandleSignals(void (*handler)(int));
  ~HandleSignals();
  HandleSignals(const HandleSignals&) = delete;
  HandleSignals& operator=(const HandleSignals&) = delete;

 private:
  struct sigaction previous_interrupt_, previous_terminate_;
};

// While it lives, the first interrupt makes `trainer` stop after its current step, and the first
// termination signal makes it leave the other workers, or stop if there are none; a second signal
// ends the process at once. One at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(Trainer& trainer);
  ~StopOnSignal();

  // The signal that came, or 0.
  static int received();

 private:
  HandleSignals signals_;
};

}  // namespace artel
