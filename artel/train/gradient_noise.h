// How much gradients differ from sample to sample, beside the gradient itself: the simple noise
// scale of McCandlish et al. (2018), "An Empirical Model of Large-Batch Training".
//
//   const std::vector<double> squares = {4.1, 3.9};  // of the gradients of two lanes
//   const auto noise = artel::gradient_noise(squares, 64, 7.2);
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace artel {

struct GradientNoise {
  double variance = 0;  // of the gradient of one sample: the trace of the covariance
  double square = 0;    // of the norm of the true gradient; by chance it may come out negative
};

// Both estimates are right on average. `lanes` has, for each lane of a global batch, the squares of
// its part of the summed gradient, and `sum` the squares of the sum. With r_l the part of a lane
// with b_l of B samples, and L lanes that have any,
//
//   variance = B / (L - 1) * (sum over l of |r_l|^2 B / b_l - |sum of r_l|^2)
//   square = |sum of r_l|^2 - variance / B
//
// Nothing if fewer than two lanes have samples.
std::optional<GradientNoise> gradient_noise(std::span<const double> lanes, int64_t batch,
                                            double sum);

}  // namespace artel
