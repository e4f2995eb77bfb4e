#include "artel/exec/cpu/matmul/limbs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "artel/graph/ops/limbs.h"

namespace artel::kernels {
namespace {

// Whole numbers times powers of 2^kLimbBits.
class LimbSum {
 public:
  // A finite number with at most 48 significant bits, such as the product of two floats.
  void add(double number) {
    int exponent = 0;
    const double fraction = std::frexp(number, &exponent);
    const auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 2 * kHalf));
    const int place = exponent - 2 * kHalf - kLowestLimb;
    const size_t limb = static_cast<size_t>(place / kLimbBits);
    const int shift = place % kLimbBits;
    // Two halves of 24 bits, that is, two limbs apart: many of them fit into a sum of 64 bits.
    const int64_t high = mantissa >> kHalf, low = mantissa - (high << kHalf);
    sums_[limb] += low << shift;
    sums_[limb + kHalf / kLimbBits] += high * (int64_t{1} << shift);
    if (++terms_ == kMostTerms) carry();
  }

  void write(std::span<float> limbs) {
    carry();
    std::ranges::copy(sums_, limbs.begin());
  }

 private:
  static constexpr int kHalf = 24;
  static constexpr int kMostTerms = 1 << 24;
  static_assert(kHalf % kLimbBits == 0);

  // Makes all limbs but the last small.
  void carry() {
    constexpr int64_t kHalfLimb = int64_t{1} << (kLimbBits - 1);
    for (size_t i = 0; i + 1 < sums_.size(); ++i) {
      const int64_t carried = (sums_[i] + kHalfLimb) >> kLimbBits;
      sums_[i] -= carried * (int64_t{1} << kLimbBits);
      sums_[i + 1] += carried;
    }
    terms_ = 0;
  }

  std::array<int64_t, kLimbs> sums_ = {};
  int terms_ = 0;
};

}  // namespace

void limb_sums(std::span<const float> x, bool squares, std::span<float> limbs) {
  LimbSum sum;
  for (const float each : x) {
    if (!std::isfinite(each)) {
      std::ranges::fill(limbs, std::numeric_limits<float>::quiet_NaN());
      return;
    }
    if (each != 0) sum.add(squares ? double{each} * each : each);
  }
  sum.write(limbs);
}

}  // namespace artel::kernels
