// Exact sums of floats, as whole numbers ("limbs") that can be added over lanes without rounding.
//
// A sum is written in the base 2^12, with digits from -2^11 to 2^11, from the smallest square of a
// float to beyond the largest. Adding the limbs of up to 2^12 batches float by float stays exact,
// so the result depends neither on the order of the batches nor on how they are cut into lanes.
#pragma once

#include <span>

#include "artel/graph/graph.h"

namespace artel {

inline constexpr int kLimbBits = 12;
inline constexpr int kLimbs = 54;
inline constexpr int kLowestLimb = -348;  // the exponent of the first limb

// f32 [kLimbs]: the sum of all elements, or of their squares; NaN if one of them is not finite. It
// has no gradient.
Value limb_sums(Value x, bool squares);

// The number that sums of limbs stand for.
long double value_of_limbs(std::span<const double> limbs);

}  // namespace artel
