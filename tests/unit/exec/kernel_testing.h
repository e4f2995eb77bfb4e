// Helpers of the kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "artel/base/random.h"

namespace artel::kernels {

// Uniform in [-1, 1).
inline std::vector<float> random_values(int64_t count, uint64_t seed) {
  Random random{seed};
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(2 * random.uniform() - 1);
  return values;
}

// Uninitialised memory aligned for kernels.
class Workspace {
 public:
  explicit Workspace(size_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)),
              &std::free) {}
  std::byte* data() const { return data_.get(); }

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> data_;
};

// Differences are measured against the largest expected magnitude.
inline void expect_close(const std::vector<float>& got, const std::vector<float>& expected,
                         double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double scale = 1e-30, worst = 0;
  for (const float value : expected) scale = std::max<double>(scale, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(double(got[i]) - expected[i]) / scale;
    worst = difference <= worst ? worst : difference;  // keeps a NaN
  }
  EXPECT_LE(worst, tolerance) << what;
}

}  // namespace artel::kernels
