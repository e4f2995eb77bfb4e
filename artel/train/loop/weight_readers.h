// Everything that still reads weights and optimizer state of the last finished step: the checkpoint
// being written, copies for other workers, and newcomers. Internal to train.
#pragma once

#include "artel/train/loop/newcomers.h"
#include "artel/train/loop/parts_recovery.h"
#include "artel/train/loop/saver.h"

namespace artel {

class WeightReaders {
 public:
  WeightReaders(const TrainerState& state, Saver& saver, PartsRecovery& parts,
                const Newcomers& newcomers)
      : s_(state), saver_(saver), parts_(parts), newcomers_(newcomers) {}

  // Waits for all of them. Call before the state changes, from any thread.
  void wait() const {
    saver_.finish();
    parts_.mirrors().before_update(s_.step + 1);
    newcomers_.wait();
  }

 private:
  const TrainerState& s_;
  Saver& saver_;
  PartsRecovery& parts_;
  const Newcomers& newcomers_;
};

}  // namespace artel
