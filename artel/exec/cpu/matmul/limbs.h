// Exact sums of floats (graph/ops/limbs.h).
#pragma once

#include <span>

namespace artel::kernels {

// Writes kLimbs limbs of the sum of x, or of its squares.
void limb_sums(std::span<const float> x, bool squares, std::span<float> limbs);

}  // namespace artel::kernels
