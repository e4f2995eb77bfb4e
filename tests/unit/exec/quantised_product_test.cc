// Products with matrices of few bits against plain sums over the expanded matrix and rounded rows.
#include "artel/exec/cpu/matmul/quantised_product.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "artel/base/error.h"
#include "artel/tensor/quantised.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

struct QuantisedProblem {
  int64_t rows, out, in;
  int bits;
  int64_t group;
  bool offsets = true;
};

QuantisedMatrix matrix_of(const QuantisedProblem& p) {
  Tensor weight({p.out, p.in});
  const std::vector<float> values = random_values(p.out * p.in, 1, -1, 1);
  std::copy(values.begin(), values.end(), weight.values<float>().begin());
  QuantisedMatrix matrix = quantise_rows(weight, {p.bits, p.group});
  if (!p.offsets) matrix.offsets = Tensor();
  return matrix;
}

QuantisedShape shape_of(const QuantisedProblem& p, const QuantisedMatrix& matrix) {
  return {p.rows, p.out, p.in, p.bits, matrix.group(), matrix.has_offsets()};
}

QuantisedMemory memory_of(const QuantisedMatrix& matrix) {
  return {matrix.codes.raw(), reinterpret_cast<const uint16_t*>(matrix.scales.raw()),
          matrix.has_offsets() ? reinterpret_cast<const uint16_t*>(matrix.offsets.raw()) : nullptr};
}

// Each block of elements as multiples of its largest, divided by 127.
std::vector<double> rounded(const std::vector<float>& x, size_t block) {
  std::vector<double> result;
  for (size_t first = 0; first < x.size(); first += block) {
    double most = 0;
    for (size_t i = first; i < first + block; ++i) most = std::max(most, std::abs(double{x[i]}));
    for (size_t i = first; i < first + block; ++i)
      result.push_back(most > 0 ? std::nearbyint(x[i] * 127 / most) * most / 127 : 0);
  }
  return result;
}

std::vector<float> run(const QuantisedProblem& p, const QuantisedMatrix& matrix,
                       const std::vector<float>& x, const std::vector<float>& bias, int threads) {
  ThreadPool pool(threads);
  const QuantisedProduct product(shape_of(p, matrix));
  const Workspace workspace(product.workspace_bytes());
  std::vector<float> y(static_cast<size_t>(p.rows * p.out));
  product.run(pool, x.data(), memory_of(matrix), bias.empty() ? nullptr : bias.data(), y.data(),
              workspace.data());
  return y;
}

const QuantisedProblem kQuantisedProblems[] = {
    {1, 1, 32, 8, 0},     {1, 7, 96, 8, 0},     {5, 33, 64, 8, 32},        {1, 9, 64, 4, 32},
    {4, 300, 320, 4, 32}, {7, 40, 256, 4, 128}, {3, 12, 96, 4, 32, false}, {2, 2048, 768, 4, 64},
    {1, 2048, 768, 8, 0}, {70, 45, 608, 8, 0}};

TEST(QuantisedProduct, EqualsSumsOverTheExpandedMatrix) {
  for (const QuantisedProblem& p : kQuantisedProblems) {
    const QuantisedMatrix matrix = matrix_of(p);
    const Tensor weight = expand(matrix);
    const std::vector<float> x = random_values(p.rows * p.in, 2, -3, 2);
    const std::vector<float> bias = random_values(p.out, 3, -1, 1);
    const std::vector<double> whole =
        rounded(x, static_cast<size_t>(shape_of(p, matrix).rounds_rows() ? p.in : 32));
    std::vector<float> expected;
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t o = 0; o < p.out; ++o) {
        double sum = bias[static_cast<size_t>(o)];
        for (int64_t i = 0; i < p.in; ++i)
          sum += whole[static_cast<size_t>(row * p.in + i)] * weight.values<float>()[o * p.in + i];
        expected.push_back(static_cast<float>(sum));
      }
    expect_close_by_scale(run(p, matrix, x, bias, 1), expected, 1e-4,
                          fmt::format("{} rows, {} x {}, {} bits", p.rows, p.out, p.in, p.bits));
  }
}

TEST(QuantisedProduct, BitsDoNotDependOnThreadsOrOtherRows) {
  for (const QuantisedProblem& p : kQuantisedProblems) {
    const QuantisedMatrix matrix = matrix_of(p);
    const std::vector<float> x = random_values(p.rows * p.in, 2, -3, 2);
    const std::vector<float> all = run(p, matrix, x, {}, 1);
    EXPECT_EQ(all, run(p, matrix, x, {}, 3));
    QuantisedProblem last = p;
    last.rows = 1;
    const std::vector<float> one = run(last, matrix, {x.end() - p.in, x.end()}, {}, 1);
    EXPECT_EQ(one, (std::vector<float>{all.end() - p.out, all.end()}));
  }
}

// Exact sums, whatever instructions compute them.
TEST(Int8Product, BitsDoNotDependOnInstructions) {
  for (const auto& [rows, out, in] :
       {std::array<int64_t, 3>{1, 1, 32}, {9, 6, 96}, {37, 21, 1056}, {2, 5, kLongestInt8Row}}) {
    ThreadPool pool(2);
    std::vector<int8_t> codes(static_cast<size_t>(rows * in)), w(static_cast<size_t>(out * in));
    std::vector<float> x_scales(static_cast<size_t>(rows));
    std::vector<int32_t> x_sums(static_cast<size_t>(rows));
    const Int8Rows rounded = {codes.data(), x_scales.data(), x_sums.data()};
    // The largest sums: all codes of the longest row are extreme.
    const bool extreme = in == kLongestInt8Row;
    const std::vector<float> x = random_values(rows * in, 4, extreme ? 1 : -1, 1);
    round_int8_rows(pool, x.data(), rows, in, rounded);
    const std::vector<float> numbers = random_values(out * in, 5, extreme ? 127 : -127, 127);
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(numbers[i]);
    const std::vector<float> scales = random_values(out, 6, 0, 1), bias = random_values(out, 7);
    std::vector<float> y(static_cast<size_t>(rows * out)), other = y;
    int8_product(pool, {rows, out, in, rounded, w.data(), scales.data(), bias.data(), y.data()},
                 Int8Instructions::any);
    int8_product(pool, {rows, out, in, rounded, w.data(), scales.data(), bias.data(), other.data()},
                 best_int8_instructions());
    EXPECT_EQ(y, other) << rows << " x " << out << " x " << in;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t o = 0; o < out; ++o) {
        int64_t sum = 0;
        for (int64_t i = 0; i < in; ++i)
          sum += int64_t{codes[static_cast<size_t>(row * in + i)]} *
                 w[static_cast<size_t>(o * in + i)];
        EXPECT_EQ(y[static_cast<size_t>(row * out + o)],
                  std::fma(static_cast<float>(sum),
                           x_scales[static_cast<size_t>(row)] * scales[static_cast<size_t>(o)],
                           bias[static_cast<size_t>(o)]));
      }
  }
}

TEST(Int8Product, RowsWithoutFiniteNumbersGiveNaN) {
  const QuantisedProblem p = {2, 3, 64, 8, 0};
  std::vector<float> x(128, 1.0F);
  x[70] = std::numeric_limits<float>::infinity();
  const std::vector<float> y = run(p, matrix_of(p), x, {}, 1);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::isfinite(y[i]));
    EXPECT_TRUE(std::isnan(y[3 + i]));
  }
}

TEST(QuantisedProduct, ZerosStayZerosAndRowsAreLookedUp) {
  const QuantisedProblem p = {1, 6, 64, 4, 32};
  const QuantisedMatrix matrix = matrix_of(p);
  EXPECT_EQ(run(p, matrix, std::vector<float>(64), {}, 1), std::vector<float>(6));
  ThreadPool pool(1);
  for (const QuantisedProblem& each :
       {p, QuantisedProblem{1, 6, 64, 8, 0}, QuantisedProblem{1, 6, 64, 4, 32, false}}) {
    const QuantisedMatrix table = matrix_of(each);
    const Tensor numbers = expand(table);
    const std::vector<int32_t> indices = {5, 0, 5};
    std::vector<float> y(3 * 64);
    quantised_rows(pool, shape_of(each, table), 3, indices.data(), memory_of(table), y.data());
    for (int64_t i = 0; i < 64; ++i) {
      EXPECT_EQ(y[i], numbers.values<float>()[5 * 64 + i]);
      EXPECT_EQ(y[64 + i], numbers.values<float>()[i]);
    }
    const int32_t outside = 6;
    EXPECT_THROW(
        quantised_rows(pool, shape_of(each, table), 1, &outside, memory_of(table), y.data()),
        Error);
  }
}

}  // namespace
}  // namespace artel::kernels
