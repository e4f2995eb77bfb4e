#include "artel/train/loop/swapped_averages.h"

#include <algorithm>

namespace artel {

SwappedAverages::SwappedAverages(Update& update, KeptRanges kept)
    : update_(update), kept_(std::move(kept)) {
  swap();
}

void SwappedAverages::swap() {
  for (const auto& [name, weights, average] : update_.averages()) {
    const auto found = kept_.find(name);
    if (found == kept_.end()) {
      std::swap_ranges(weights.begin(), weights.end(), average.begin());
      continue;
    }
    for (const auto& [first, count] : found->second) {
      const std::span<float> some = weights.subspan(first, count);
      std::swap_ranges(some.begin(), some.end(), average.begin() + static_cast<ptrdiff_t>(first));
    }
  }
}

}  // namespace artel
