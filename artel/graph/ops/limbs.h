// Exact sums of floats, as whole numbers ("limbs") that can be added over lanes without rounding.
//
// A sum is represented in base 2^12 with digits from -2^11 to 2^11, from the smallest square of a
// float to beyond the largest. Adding the limbs of up to 2^12 batches element by element is exact,
// so the result does not depend on the order of the batches or their division into lanes.
#pragma once

#include <span>

#include "artel/graph/graph.h"

namespace artel {

inline constexpr int kLimbBits = 12;
inline constexpr int kLimbs = 54;
inline constexpr int kLowestLimb = -348;  // exponent of the first limb

// The sum of all elements, or of their squares, as f32 [kLimbs]. NaN if an element is not finite.
// Has no gradient.
Value limb_sums(Value x, bool squares);

// Converts sums of limbs to a number.
long double value_of_limbs(std::span<const double> limbs);

}  // namespace artel
