// Helpers of the kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
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

// Memory aligned for kernels, full of NaN: what a kernel reads before it writes it shows, and so
// does what it writes behind the end.
class Workspace {
 public:
  explicit Workspace(size_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + kTail + 63) / 64 * 64)),
              &std::free) {
    std::memset(data_.get(), 0xff, bytes + kTail);
  }
  std::byte* data() const { return data_.get(); }
  bool tail_is_untouched() const {
    return std::all_of(data_.get() + bytes_, data_.get() + bytes_ + kTail,
                       [](std::byte b) { return b == std::byte{0xff}; });
  }

 private:
  static constexpr size_t kTail = 1024;
  size_t bytes_;
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
