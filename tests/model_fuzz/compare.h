// How far apart arrays are.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/reference/array.h"

namespace artel::model_fuzz {

// Rounding alone explains a difference of this share of the numbers involved.
inline constexpr double kRounding = 2e-4;
// The remainder of terms of order 1 that cancel out.
inline constexpr double kCancelled = 2e-6;
// Where that is exceeded, the reference itself is run with rounding errors, to see how far they
// move it where sums cancel out, a ReLU flips or a normalisation divides by almost nothing.
inline constexpr double kNoise = 1e-7;
inline constexpr int kNoisyRuns = 24;
inline constexpr double kSway = 30;  // how much further a compiled program may be

// A network in which rounding errors move a gradient by this share has no correct answer in f32,
// for example because a normalisation amplifies tiny differences between almost equal numbers.
inline constexpr double kLost = 0.1;

inline double largest(const reference::Array& array) {
  double most = 0;
  for (const double value : array.data) most = std::max(most, std::abs(value));
  return most;
}

inline bool is_finite(const reference::Array& array) {
  return std::all_of(array.data.begin(), array.data.end(),
                     [](double value) { return std::isfinite(value); });
}

// The largest difference; infinite if any is not a number.
inline double distance(const reference::Array& a, const reference::Array& b) {
  double most = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    const double d = std::abs(a.data[i] - b.data[i]);
    if (!(d <= most)) most = std::isnan(d) ? INFINITY : d;
  }
  return most;
}

}  // namespace artel::model_fuzz
