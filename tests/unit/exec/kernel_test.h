// Common parts of kernel tests: reproducible data, memory that detects misuse, a check that the
// number of threads never changes a bit, and comparisons.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "artel/base/random.h"
#include "artel/base/thread_pool.h"

namespace artel::kernels {

inline std::vector<float> random_values(int64_t n, uint64_t seed, float low = -2, float high = 2) {
  Random random{seed};
  std::vector<float> values(n);
  for (float& value : values) value = random.uniform(low, high);
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

// Calls run(pool), which returns all results as one vector, with 1, 2 and 3 threads; they must have
// the same bits. Returns the result.
template <typename Run>
std::vector<float> same_for_all_threads(const Run& run) {
  ThreadPool one(1);
  const std::vector<float> expected = run(one);
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    const std::vector<float> got = run(pool);
    EXPECT_EQ(got.size(), expected.size());
    EXPECT_TRUE(expected.empty() ||
                std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0)
        << threads << " threads";
  }
  return expected;
}

// |got - expected| <= tolerance * max(1, |expected|), and NaN only where expected.
inline void expect_close(const std::vector<float>& got, const std::vector<double>& expected,
                         double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(got[i]) : got[i] == expected[i])
          << "at " << i << ": " << got[i] << ", expected " << expected[i];
    } else {
      ASSERT_LE(std::abs(got[i] - expected[i]), tolerance * std::max(1.0, std::abs(expected[i])))
          << "at " << i << ": " << got[i] << ", expected " << expected[i];
    }
  }
}

// Differences are measured against the largest expected magnitude.
inline void expect_close_by_scale(const std::vector<float>& got, const std::vector<float>& expected,
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
