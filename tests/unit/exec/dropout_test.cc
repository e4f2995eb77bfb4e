#include "artel/exec/cpu/elementwise/dropout.h"

#include "artel/base/error.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

TEST(Dropout, FollowsTheStream) {
  const uint64_t key = mix_key({7, 8});
  for (const int64_t n : {0, 1, 3, 63, 64, 65, 10007}) {
    for (const float probability : {0.0f, 0.1f, 0.5f, 1.0f}) {
      const std::vector<float> x = random_values(n, 1, 1, 2);
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<float> y = x;  // in place
        dropout(pool, key, probability, n, y.data(), y.data());
        return y;
      });
      Random stream(key);
      for (int64_t i = 0; i < n; ++i) {
        const bool kept = stream.uniform() >= probability;
        ASSERT_FLOAT_EQ(got[i], kept ? x[i] / (1 - probability) : 0.0f) << i;
      }
    }
  }
}

TEST(Dropout, RejectsWrongProbability) {
  ThreadPool pool(1);
  EXPECT_THROW(dropout(pool, 1, 1.5f, 0, nullptr, nullptr), Error);
  EXPECT_THROW(dropout(pool, 1, NAN, 0, nullptr, nullptr), Error);
}

}  // namespace
}  // namespace artel::kernels
