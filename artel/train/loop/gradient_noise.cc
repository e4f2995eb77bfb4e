#include "artel/train/loop/gradient_noise.h"

namespace artel {

std::optional<GradientNoise> gradient_noise(std::span<const LaneNoise> lanes, int64_t batch,
                                            double sum) {
  const auto samples = static_cast<double>(batch);
  double weight = 0;
  for (const LaneNoise& lane : lanes) weight += lane.weight;
  double small = 0;  // weighted average of the squares of the lanes' means
  int seen = 0;
  for (const LaneNoise& lane : lanes) {
    if (!(lane.weight > 0)) continue;
    small += lane.squares * weight / lane.weight;
    ++seen;
  }
  if (seen < 2) return {};
  const double variance = samples / (seen - 1) * (small - sum);
  return GradientNoise{variance, sum - variance / samples};
}

}  // namespace artel
