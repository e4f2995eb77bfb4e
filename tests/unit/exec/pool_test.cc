#include "artel/exec/cpu/rows/pool.h"

#include <algorithm>

#include "artel/base/error.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

std::vector<PoolShape> shapes() {
  std::vector<PoolShape> result;
  for (const int64_t channels : {1, 3, 16, 37}) {
    result.push_back({2, PoolAxis::windows(8, 2, 2), PoolAxis::windows(6, 2, 2), channels});
    result.push_back({1, PoolAxis::windows(7, 3, 2, 1), PoolAxis::windows(9, 3, 2, 1), channels});
    result.push_back({3, PoolAxis::windows(5, 3, 1), PoolAxis::windows(7, 2, 3), channels});
    result.push_back({2, PoolAxis::adaptive(7, 3), PoolAxis::adaptive(5, 5), channels});
    result.push_back({2, PoolAxis::global(4), PoolAxis::global(8), channels});
    result.push_back({0, PoolAxis::windows(4, 2, 2), PoolAxis::windows(4, 2, 2), channels});
  }
  return result;
}

// The input positions of each output, from the definition.
struct Window {
  int64_t begin, end, padded;
};
Window window(const PoolAxis& axis, int64_t i) {
  if (axis.kernel == 0) {
    const double ratio = static_cast<double>(axis.input) / static_cast<double>(axis.output);
    const auto begin = static_cast<int64_t>(std::floor(static_cast<double>(i) * ratio));
    const auto end = static_cast<int64_t>(std::ceil(static_cast<double>(i + 1) * ratio - 1e-9));
    return {begin, end, end - begin};
  }
  const int64_t begin = i * axis.stride - axis.padding;
  return {std::max<int64_t>(0, begin), std::min(axis.input, begin + axis.kernel),
          std::min(axis.input + axis.padding, begin + axis.kernel) - begin};
}

// visit(output index, input index, elements in the window, with padding), in row-major order.
template <typename Visit>
void for_each_pair(const PoolShape& s, const Visit& visit) {
  for (int64_t n = 0; n < s.images; ++n) {
    for (int64_t i = 0; i < s.height.output; ++i) {
      for (int64_t j = 0; j < s.width.output; ++j) {
        const Window rows = window(s.height, i), columns = window(s.width, j);
        const int64_t size = (rows.end - rows.begin) * (columns.end - columns.begin);
        for (int64_t h = rows.begin; h < rows.end; ++h)
          for (int64_t w = columns.begin; w < columns.end; ++w)
            for (int64_t c = 0; c < s.channels; ++c)
              visit(((n * s.height.output + i) * s.width.output + j) * s.channels + c,
                    ((n * s.height.input + h) * s.width.input + w) * s.channels + c, size,
                    rows.padded * columns.padded);
      }
    }
  }
}

template <typename Index>
void check_max(const PoolShape& s) {
  // Few distinct values, so that ties happen; the first of them wins.
  std::vector<float> x = random_values(s.input_elements(), 1, 0, 8);
  for (float& value : x) value = std::floor(value);
  const std::vector<float> dy = random_values(s.output_elements(), 2);
  const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
    std::vector<float> y(s.output_elements()), dx(s.input_elements(), 99.0f);
    std::vector<Index> argmax(s.output_elements());
    max_pool<Index>(pool, s, x.data(), y.data(), argmax.data());
    max_pool_backward<Index>(pool, s, dy.data(), argmax.data(), dx.data());
    y.insert(y.end(), dx.begin(), dx.end());
    return y;
  });
  std::vector<int64_t> winner(s.output_elements(), -1);
  for_each_pair(s, [&](int64_t out, int64_t in, int64_t, int64_t) {
    if (winner[out] < 0 || x[in] > x[winner[out]]) winner[out] = in;
  });
  std::vector<double> expected(s.output_elements() + s.input_elements());
  for (size_t out = 0; out < winner.size(); ++out) {
    expected[out] = x[winner[out]];
    expected[winner.size() + winner[out]] += dy[out];
  }
  expect_close(got, expected, 1e-6);
}

TEST(Pool, Max) {
  for (const PoolShape& shape : shapes()) {
    check_max<uint8_t>(shape);
    check_max<int32_t>(shape);
  }
}

TEST(Pool, Average) {
  for (const PoolShape& s : shapes()) {
    for (const bool include : {false, true}) {
      const std::vector<float> x = random_values(s.input_elements(), 1),
                               dy = random_values(s.output_elements(), 2);
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<float> y(s.output_elements()), dx(s.input_elements(), 99.0f);
        average_pool(pool, s, include, x.data(), y.data());
        average_pool_backward(pool, s, include, dy.data(), dx.data());
        y.insert(y.end(), dx.begin(), dx.end());
        return y;
      });
      std::vector<double> expected(s.output_elements() + s.input_elements());
      for_each_pair(s, [&](int64_t out, int64_t in, int64_t size, int64_t padded) {
        const double share = 1.0 / static_cast<double>(include ? padded : size);
        expected[out] += x[in] * share;
        expected[s.output_elements() + in] += dy[out] * share;
      });
      expect_close(got, expected, 2e-6);
    }
  }
}

TEST(Pool, NaNWinsAndWindowsAreChecked) {
  const PoolShape shape{1, PoolAxis::global(2), PoolAxis::global(2), 1};
  const std::vector<float> x = {1, NAN, 3, 2};
  float y = 0;
  uint8_t argmax = 0;
  ThreadPool pool(1);
  max_pool<uint8_t>(pool, shape, x.data(), &y, &argmax);
  EXPECT_TRUE(std::isnan(y));
  EXPECT_EQ(argmax, 1);
  EXPECT_THROW(PoolAxis::windows(4, 5, 1), Error);
  EXPECT_THROW(PoolAxis::windows(4, 2, 1, 2), Error);
  const PoolShape large{1, PoolAxis::global(32), PoolAxis::global(32), 1};
  const std::vector<float> image = random_values(1024, 1);
  EXPECT_THROW(max_pool<uint8_t>(pool, large, image.data(), &y, &argmax), Error);
}

}  // namespace
}  // namespace artel::kernels
