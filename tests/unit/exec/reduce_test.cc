#include "artel/exec/cpu/rows/reduce.h"

#include <limits>

#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

std::vector<float> run(const ReduceKernel& kernel, const std::vector<float>& x, int64_t outputs) {
  return same_for_all_threads([&](ThreadPool& pool) {
    std::vector<float> y(outputs);
    std::vector<char> workspace(kernel.workspace_bytes());
    kernel.run(pool, x.data(), y.data(), workspace.data());
    return y;
  });
}

// Every subset of the axes of a 3-D array, dense and transposed.
TEST(Reduce, AllAxesAgainstDouble) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1, 1, 1}, {3, 5, 7}, {200, 1, 33}, {2, 129, 16}, {4, 3, 1500}, {300, 20, 9}, {2, 0, 3}};
  for (const std::vector<int64_t>& extents : shapes) {
    const int64_t n = extents[0] * extents[1] * extents[2];
    const std::vector<float> x = random_values(n, 1);
    const std::vector<std::vector<int64_t>> layouts = {{extents[1] * extents[2], extents[2], 1},
                                                       {1, extents[0] * extents[2], extents[0]}};
    for (const std::vector<int64_t>& strides : layouts) {
      for (int subset = 0; subset < 8; ++subset) {
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max, ReduceOp::min}) {
          SCOPED_TRACE(testing::Message()
                       << extents[0] << " x " << extents[1] << " x " << extents[2] << ", axes "
                       << subset << ", op " << static_cast<int>(op) << ", stride " << strides[2]);
          const std::vector<bool> reduced = {(subset & 1) != 0, (subset & 2) != 0,
                                             (subset & 4) != 0};
          int64_t outputs = 1, terms = 1;
          for (int axis = 0; axis < 3; ++axis) (reduced[axis] ? terms : outputs) *= extents[axis];
          const double infinity = std::numeric_limits<double>::infinity();
          std::vector<double> expected(outputs, op == ReduceOp::max   ? -infinity
                                                : op == ReduceOp::min ? infinity
                                                                      : 0.0);
          for (int64_t i = 0; i < extents[0]; ++i) {
            for (int64_t j = 0; j < extents[1]; ++j) {
              for (int64_t k = 0; k < extents[2]; ++k) {
                const int64_t at[] = {i, j, k};
                int64_t out = 0;
                for (int axis = 0; axis < 3; ++axis)
                  if (!reduced[axis]) out = out * extents[axis] + at[axis];
                const double value = x[i * strides[0] + j * strides[1] + k * strides[2]];
                double& total = expected[out];
                total = op == ReduceOp::max   ? std::max(total, value)
                        : op == ReduceOp::min ? std::min(total, value)
                                              : total + value;
              }
            }
          }
          if (op == ReduceOp::mean)
            for (double& value : expected) value /= static_cast<double>(terms);
          expect_close(run(ReduceKernel(op, extents, strides, reduced), x, outputs), expected,
                       5e-5);
        }
      }
    }
  }
}

TEST(Reduce, LargeSumIsAccurate) {
  const int64_t n = 3'000'001;
  const std::vector<float> x = random_values(n, 1, 0, 1);
  double exact = 0;
  for (const float value : x) exact += value;
  const float sum = run(ReduceKernel(ReduceOp::sum, {n}, {1}, {true}), x, 1)[0];
  EXPECT_NEAR(sum, exact, 2e-7 * exact);
}

TEST(Reduce, NaNWins) {
  for (const int64_t stride : {1, 2}) {
    std::vector<float> x(200, 1.0f);
    x[46] = NAN;
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min})
      EXPECT_TRUE(std::isnan(run(ReduceKernel(op, {100}, {stride}, {true}), x, 1)[0]));
  }
}

TEST(Reduce, BiasGradients) {
  for (const int64_t rows : {0, 1, 63, 64, 65, 5000}) {
    for (const int64_t columns : {1, 10, 16, 700}) {
      const int64_t n = rows * columns;
      const std::vector<float> dy = random_values(n, 1), y = random_values(n, 2);
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<char> workspace(column_sum_workspace_bytes(rows, columns));
        std::vector<float> result(2 * columns);
        bias_gradient(pool, rows, columns, dy.data(), result.data(), workspace.data());
        std::vector<float> dz = dy;  // in place
        relu_bias_backward(pool, rows, columns, dz.data(), y.data(), dz.data(),
                           result.data() + columns, workspace.data());
        result.insert(result.end(), dz.begin(), dz.end());
        std::vector<float> scaled(n), sums(columns);
        slope_bias_backward(pool, rows, columns, dy.data(), y.data(), scaled.data(), sums.data(),
                            workspace.data());
        result.insert(result.end(), sums.begin(), sums.end());
        result.insert(result.end(), scaled.begin(), scaled.end());
        return result;
      });
      std::vector<double> expected(3 * columns + 2 * n);
      for (int64_t i = 0; i < n; ++i) {
        expected[2 * columns + i] = y[i] > 0 ? dy[i] : 0;
        expected[i % columns] += dy[i];
        expected[columns + i % columns] += expected[2 * columns + i];
        expected[3 * columns + n + i] = double{dy[i]} * y[i];
        expected[2 * columns + n + i % columns] += expected[3 * columns + n + i];
      }
      expect_close(got, expected, 5e-5);
    }
  }
}

}  // namespace
}  // namespace artel::kernels
