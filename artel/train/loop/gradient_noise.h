// Gradient noise scale: the simple noise scale of McCandlish et al. (2018), "An Empirical Model of
// Large-Batch Training".
//
//   const std::vector<artel::LaneNoise> lanes = {{4.1, 32}, {3.9, 32}};
//   const auto noise = artel::gradient_noise(lanes, 64, 7.2);
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace artel {

struct GradientNoise {
  double variance = 0;  // trace of the covariance of one sample's gradient
  double square = 0;    // squared norm of the true gradient; the estimate may be negative
};

// A lane of a global batch.
struct LaneNoise {
  double squares = 0;  // squared norm of its part of the summed gradient
  double weight = 0;   // total weight of its samples in the loss
};

// Unbiased estimates. `sum` is the squared norm of the sum over the lanes. With r_l the part of a
// lane with the weight w_l of W, B samples, and L lanes with nonzero weight,
//
//   variance = B / (L - 1) * (sum over l of |r_l|^2 W / w_l - |sum of r_l|^2)
//   square = |sum of r_l|^2 - variance / B
//
// Empty if fewer than two lanes have nonzero weight.
std::optional<GradientNoise> gradient_noise(std::span<const LaneNoise> lanes, int64_t batch,
                                            double sum);

}  // namespace artel
