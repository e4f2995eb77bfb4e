#include "artel/exec/cpu/elementwise/copy.h"

#include <algorithm>

#include "artel/base/error.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

// Every permutation of odd shapes.
TEST(Copy, Permutations) {
  const std::vector<std::vector<int64_t>> shapes = {{1, 1, 1, 1},   {2, 3, 5, 7},    {3, 17, 1, 33},
                                                    {2, 64, 32, 3}, {1, 40, 1, 100}, {2, 0, 3, 4}};
  for (const std::vector<int64_t>& extents : shapes) {
    std::vector<int> order = {0, 1, 2, 3};
    do {
      std::vector<int64_t> x_strides(4), y_strides(4);
      int64_t x_stride = 1, y_stride = 1;
      for (int axis = 3; axis >= 0; --axis) {
        x_strides[axis] = x_stride;
        y_strides[order[axis]] = y_stride;
        x_stride *= extents[axis];
        y_stride *= extents[order[axis]];
      }
      const int64_t n = x_stride;
      const std::vector<float> x = random_values(n, 1), before = random_values(n, 2);
      const CopyKernel kernel(extents, x_strides, y_strides);
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<float> y = before;
        kernel.run(pool, x.data(), y.data());
        return y;
      });
      std::vector<float> expected = before;
      for (int64_t i = 0; i < n; ++i) {
        int64_t to = 0;
        for (int axis = 0; axis < 4; ++axis)
          to += i / x_strides[axis] % extents[axis] * y_strides[axis];
        expected[to] = x[i];
      }
      ASSERT_EQ(got, expected);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(Copy, SlicesAndBroadcasts) {
  const std::vector<float> x = random_values(12, 1);
  ThreadPool pool(2);
  // Columns 1 and 2 of a 3 x 4 matrix into a column of twos.
  std::vector<float> slice(6);
  CopyKernel({3, 2}, {4, 1}, {2, 1}).run(pool, x.data() + 1, slice.data());
  EXPECT_EQ(slice, (std::vector<float>{x[1], x[2], x[5], x[6], x[9], x[10]}));
  // A row repeated, a column repeated, and every other element of the target.
  std::vector<float> rows(8), columns(8), sparse(4, 5.0f);
  CopyKernel({2, 4}, {0, 1}, {4, 1}).run(pool, x.data(), rows.data());
  EXPECT_EQ(rows, (std::vector<float>{x[0], x[1], x[2], x[3], x[0], x[1], x[2], x[3]}));
  CopyKernel({2, 4}, {1, 0}, {4, 1}).run(pool, x.data(), columns.data());
  EXPECT_EQ(columns, (std::vector<float>{x[0], x[0], x[0], x[0], x[1], x[1], x[1], x[1]}));
  CopyKernel({2}, {1}, {2}).run(pool, x.data(), sparse.data());
  EXPECT_EQ(sparse, (std::vector<float>{x[0], 5, x[1], 5}));
  EXPECT_THROW(CopyKernel({2}, {1, 1}, {2}), Error);
}

TEST(Copy, AddInto) {
  for (const int64_t n : {0, 1, 17, 40000}) {
    const std::vector<float> x = random_values(n, 1), y = random_values(n, 2);
    const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
      std::vector<float> sum = y;
      add_into(pool, n, x.data(), sum.data());
      return sum;
    });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[i], y[i] + x[i]);
  }
}

}  // namespace
}  // namespace artel::kernels
