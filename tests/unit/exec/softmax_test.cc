#include "artel/exec/cpu/rows/softmax.h"

#include <algorithm>
#include <functional>

#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

using Function = std::function<void(ThreadPool&, int64_t, int64_t, const float*, float*)>;
using Gradient =
    std::function<void(ThreadPool&, int64_t, int64_t, const float*, const float*, float*)>;

// The forward pass against double; the backward pass against the Jacobian times dy.
void check(const Function& forward, const Gradient& backward, bool logarithm) {
  for (const int64_t rows : {0, 1, 3, 200}) {
    for (const int64_t columns : {1, 2, 7, 8, 10, 33, 1001}) {
      const int64_t n = rows * columns;
      const std::vector<float> x = random_values(n, 1, -9, 9), dy = random_values(n, 2);
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<float> y = x, dx = dy;  // in place
        forward(pool, rows, columns, y.data(), y.data());
        backward(pool, rows, columns, dx.data(), y.data(), dx.data());
        y.insert(y.end(), dx.begin(), dx.end());
        return y;
      });
      std::vector<double> expected(2 * n);
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0, dot = 0, total = 0;
        for (int64_t c = 0; c < columns; ++c) sum += std::exp(x[r * columns + c]);
        for (int64_t c = 0; c < columns; ++c) {
          const double p = std::exp(x[r * columns + c]) / sum;
          expected[r * columns + c] = logarithm ? std::log(p) : p;
          dot += p * dy[r * columns + c];
          total += dy[r * columns + c];
        }
        for (int64_t c = 0; c < columns; ++c) {
          const double p = std::exp(x[r * columns + c]) / sum;
          expected[n + r * columns + c] =
              logarithm ? dy[r * columns + c] - p * total : p * (dy[r * columns + c] - dot);
        }
      }
      expect_close(got, expected, 5e-6);
    }
  }
}

TEST(Softmax, AgainstDouble) { check(softmax, softmax_backward, false); }
TEST(LogSoftmax, AgainstDouble) { check(log_softmax, log_softmax_backward, true); }

TEST(Softmax, LargeLogitsAndMasks) {
  ThreadPool pool(1);
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {1000, 1000, -infinity};
  softmax(pool, 1, 3, x.data(), x.data());
  EXPECT_EQ(x, (std::vector<float>{0.5f, 0.5f, 0}));
  x = {0, NAN, 1};
  softmax(pool, 1, 3, x.data(), x.data());
  EXPECT_TRUE(std::isnan(x[0]));
}

}  // namespace
}  // namespace artel::kernels
