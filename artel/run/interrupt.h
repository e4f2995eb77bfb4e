// Handling of Ctrl-C and termination signals.
#pragma once

#include <csignal>

#include "artel/train/trainer.h"

namespace artel {

// Directs interrupt and termination signals to a handler during its lifetime. SIG_IGN ignores them.
class HandleSignals {
 public:
  explicit HandleSignals(void (*handler)(int));
  ~HandleSignals();
  HandleSignals(const HandleSignals&) = delete;
  HandleSignals& operator=(const HandleSignals&) = delete;

 private:
  struct sigaction previous_interrupt_, previous_terminate_;
};

// During its lifetime, the first interrupt stops `trainer` after its current step. The first
// termination signal makes it leave the other workers, or stop if it is alone; later ones have no
// effect. A second interrupt ends the process immediately. Only one instance may exist.
class StopOnSignal {
 public:
  explicit StopOnSignal(Trainer& trainer);
  ~StopOnSignal();

  // The received signal, or 0.
  static int received();

 private:
  HandleSignals signals_;
};

}  // namespace artel
