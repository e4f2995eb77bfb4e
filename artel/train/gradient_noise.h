// How much gradients differ from sample to sample, beside the gradient itself: the simple noise
// scale of McCandlish et al. (2018), "An Empirical Model of Large-Batch Training".
//
//   const std::vector<artel::LaneNoise> lanes = {{4.1, 32}, {3.9, 32}};
//   const auto noise = artel::gradient_noise(lanes, 64, 7.2);
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace artel {

struct GradientNoise {
  double variance = 0;  // of the gradient of one sample: the trace of the covariance
  double square = 0;    // of the norm of the true gradient; by chance it may come out negative
};

// A lane of a global batch.
struct LaneNoise {
  double squares = 0;  // of its part of the summed gradient
  double weight = 0;   // of its samples in the loss: their number if all count equally
};

// Both estimates are right on average. `sum` has the squares of the sum over the lanes. With r_l
// the part of a lane with the weight w_l of W, B samples, and L lanes that have any weight,
//
//   variance = B / (L - 1) * (sum over l of |r_l|^2 W / w_l - |sum of r_l|^2)
//   square = |sum of r_l|^2 - variance / B
//
// Nothing if fewer than two lanes have any.
std::optional<GradientNoise> gradient_noise(std::span<const LaneNoise> lanes, int64_t batch,
                                            double sum);

}  // namespace artel
