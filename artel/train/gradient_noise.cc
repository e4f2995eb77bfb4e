#include "artel/train/gradient_noise.h"

#include "artel/train/stepper.h"

namespace artel {

std::optional<GradientNoise> gradient_noise(std::span<const double> lanes, int64_t batch,
                                            double sum) {
  const auto all = static_cast<double>(batch);
  double small = 0;  // what the squares of lanes' means are on average, weighted by their samples
  int seen = 0;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const auto [begin, end] =
        Stepper::rows_of_lane(batch, static_cast<int>(lanes.size()), static_cast<int>(lane));
    if (begin == end) continue;
    small += lanes[lane] * all / static_cast<double>(end - begin);
    ++seen;
  }
  if (seen < 2) return {};
  const double variance = all / (seen - 1) * (small - sum);
  return GradientNoise{variance, sum - variance / all};
}

}  // namespace artel
