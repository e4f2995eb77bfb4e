// Swaps averaged weights with the trained ones for a test.
#pragma once

#include "artel/train/parts/divided_state.h"

namespace artel {

// During its lifetime, swaps the averages of an update (optim::kAverageSlot) with the weights in
// place. No effect if weights are not averaged. Needs no memory.
class SwappedAverages {
 public:
  // Borrows `update`. Swaps parameters entirely, except those in `kept`, of which it swaps
  // only the listed ranges.
  explicit SwappedAverages(Update& update, KeptRanges kept = {});
  ~SwappedAverages() { swap(); }
  SwappedAverages(const SwappedAverages&) = delete;
  SwappedAverages& operator=(const SwappedAverages&) = delete;

 private:
  void swap();

  Update& update_;
  const KeptRanges kept_;
};

}  // namespace artel
