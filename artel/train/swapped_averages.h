// Averaged weights in the place of the weights, for a test.
#pragma once

#include "artel/train/divided_state.h"

namespace artel {

// While it lives, the averages that an update keeps (optim::kAverageSlot) lie where the weights do,
// and these in their place. Nothing happens if weights are not averaged. Takes no memory.
class SwappedAverages {
 public:
  // `update` is borrowed. Of parameters that are in `kept`, only those elements.
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
