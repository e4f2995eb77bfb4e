// What the tests of kernels share: reproducible data, and the check that the number of threads
// never changes a bit.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
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

}  // namespace artel::kernels
