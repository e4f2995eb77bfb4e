// Sums without rounding.
#include "artel/exec/cpu/matmul/limbs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "artel/base/random.h"
#include "artel/graph/ops/limbs.h"

namespace artel::kernels {
namespace {

std::vector<float> limbs_of(const std::vector<float>& x, bool squares) {
  std::vector<float> limbs(kLimbs);
  limb_sums(x, squares, limbs);
  return limbs;
}

long double number(const std::vector<float>& limbs) {
  return value_of_limbs(std::vector<double>(limbs.begin(), limbs.end()));
}

TEST(Limbs, OfOneNumberAreThatNumber) {
  using Limits = std::numeric_limits<float>;
  for (const float x : {0.0f, 1.0f, -1.0f, 0.1f, -12345.678f, 2047.0f, 2048.0f, -2048.0f,
                        Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min()}) {
    EXPECT_EQ(number(limbs_of({x}, false)), x);
    EXPECT_EQ(number(limbs_of({x}, true)), static_cast<long double>(x) * x);
    for (const float limb : limbs_of({x}, true)) EXPECT_LE(std::fabs(limb), 2048);
  }
  EXPECT_TRUE(std::isnan(number(limbs_of({1, Limits::infinity()}, false))));
  EXPECT_TRUE(std::isnan(number(limbs_of({Limits::quiet_NaN()}, true))));
}

// Large numbers that cancel leave the small ones.
TEST(Limbs, LoseNothing) {
  EXPECT_EQ(number(limbs_of({1e30f, 1e-30f, -1e30f}, false)), 1e-30f);
  Random random{3};
  std::vector<float> x, all;
  for (int i = 0; i < 20'000; ++i)
    x.push_back(std::ldexp(random.normal(), static_cast<int>(random.below(60)) - 30));
  for (const float each : x) all.insert(all.end(), {each, -each});
  EXPECT_EQ(number(limbs_of(all, false)), 0);
  std::vector<float> backwards(x.rbegin(), x.rend());
  EXPECT_EQ(limbs_of(x, true), limbs_of(backwards, true));
}

// The limbs of parts, added as floats, are those of the whole, whichever parts these are.
TEST(Limbs, AreAddedWithoutRounding) {
  Random random{4};
  std::vector<float> x;
  for (int i = 0; i < 4096; ++i) x.push_back(1e5f + random.normal());
  const long double expected = number(limbs_of(x, true));
  for (const size_t part : {1, 7, 64, 1000}) {
    std::vector<float> sum(kLimbs);
    for (size_t first = 0; first < x.size(); first += part) {
      const size_t end = std::min(x.size(), first + part);
      const std::vector<float> own = limbs_of(
          {x.begin() + static_cast<long>(first), x.begin() + static_cast<long>(end)}, true);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
    }
    EXPECT_EQ(number(sum), expected) << part;
  }
}

}  // namespace
}  // namespace artel::kernels
