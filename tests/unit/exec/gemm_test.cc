#include "artel/exec/cpu/matmul/gemm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "artel/base/random.h"
#include "artel/exec/libraries.h"
#include "artel/exec/peak.h"
#include "artel/tensor/dtype.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

struct Operands {
  Operands(const GemmShape& shape, int64_t padding)
      : lda((shape.transpose_a ? shape.m : shape.k) + padding),
        ldb((shape.transpose_b ? shape.k : shape.n) + padding),
        ldc(shape.n + padding),
        a(random_values((shape.transpose_a ? shape.k : shape.m) * lda, 1, -1, 1)),
        b(random_values((shape.transpose_b ? shape.n : shape.k) * ldb, 2, -1, 1)),
        c(random_values(shape.m * ldc, 3, -1, 1)),
        bias(random_values(shape.n, 4, -1, 1)) {}

  int64_t lda, ldb, ldc;
  std::vector<float> a, b, c, bias;
};

std::vector<float> reference(const GemmShape& shape, const Operands& in,
                             const GemmEpilogue& epilogue) {
  std::vector<float> out = in.c;
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < shape.k; ++p) {
        sum += double(shape.transpose_a ? in.a[p * in.lda + i] : in.a[i * in.lda + p]) *
               (shape.transpose_b ? in.b[j * in.ldb + p] : in.b[p * in.ldb + j]);
      }
      sum *= epilogue.alpha;
      if (epilogue.accumulate) sum += in.c[i * in.ldc + j];
      if (epilogue.bias) sum += in.bias[j];
      if (epilogue.relu) sum = std::max(sum, 0.0);
      out[i * in.ldc + j] = std::min(sum, double{epilogue.most});
    }
  }
  return out;
}

std::vector<float> computed(const GemmShape& shape, GemmAlgorithm algorithm, int threads,
                            const Operands& in, const GemmEpilogue& epilogue) {
  ThreadPool pool(threads, limit_library_threads);
  const Gemm gemm(shape, algorithm, threads);
  const Workspace workspace(gemm.workspace_bytes());
  std::vector<float> c = in.c;
  gemm.run(pool, in.a.data(), in.lda, in.b.data(), in.ldb, c.data(), in.ldc, epilogue,
           workspace.data());
  return c;
}

const std::vector<GemmShape> kGemmShapes = {
    {1, 1, 1},      {5, 3, 7},       {6, 16, 1},      {7, 17, 300},  {13, 8, 19},
    {97, 10, 257},  {101, 31, 5},    {128, 256, 256}, {29, 1030, 3}, {150, 2100, 5},
    {590, 20, 390}, {100, 200, 500}, {0, 4, 4},       {4, 0, 4},     {3, 5, 0}};

class GemmTest : public testing::TestWithParam<GemmAlgorithm> {};

TEST_P(GemmTest, MatchesTheReferenceForEveryLayoutAndEpilogue) {
  for (GemmShape shape : kGemmShapes) {
    for (const int layout : {0, 1, 2, 3}) {
      shape.transpose_a = layout & 1;
      shape.transpose_b = layout & 2;
      const Operands in(shape, layout == 3 ? 5 : 0);
      for (const GemmEpilogue& epilogue :
           {GemmEpilogue{}, GemmEpilogue{.bias = in.bias.data(), .relu = true},
            GemmEpilogue{.relu = true, .most = std::sqrt(static_cast<float>(shape.k))},
            GemmEpilogue{.accumulate = true, .alpha = 0.5f}}) {
        expect_close_by_scale(computed(shape, GetParam(), 2, in, epilogue),
                              reference(shape, in, epilogue), 1e-6 * std::sqrt(shape.k + 1.0),
                              fmt::format("{}x{}x{} layout {}", shape.m, shape.n, shape.k, layout));
      }
    }
  }
}

TEST_P(GemmTest, FinishesEachElementOnceWithItsFinalValue) {
  for (const GemmShape& shape : kGemmShapes) {
    const Operands in(shape, 3);
    const GemmEpilogue plain{.bias = in.bias.data()};
    GemmEpilogue finishing = plain;
    finishing.finish = [&](float* block, int64_t rows, int64_t columns) {
      for (int64_t i = 0; i < rows; ++i, block += in.ldc)
        for (int64_t j = 0; j < columns; ++j) block[j] = 2 * block[j] + 1;
    };
    std::vector<float> expected = computed(shape, GetParam(), 2, in, plain);
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.n; ++j)
        expected[i * in.ldc + j] = 2 * expected[i * in.ldc + j] + 1;
    EXPECT_EQ(computed(shape, GetParam(), 2, in, finishing), expected)
        << shape.m << "x" << shape.n << "x" << shape.k;
  }
}

TEST_P(GemmTest, BitsDoNotDependOnTheThreads) {
  for (const GemmShape& shape :
       {GemmShape{130, 270, 300}, GemmShape{500, 10, 77, true}, GemmShape{600, 70, 500, true},
        GemmShape{1800, 40, 400}, GemmShape{64, 800, 33, false, true}}) {
    const Operands in(shape, 0);
    const std::vector<float> one = computed(shape, GetParam(), 1, in, {});
    EXPECT_EQ(one, computed(shape, GetParam(), 2, in, {}));
    EXPECT_EQ(one, computed(shape, GetParam(), 3, in, {}));
  }
}

// The last part of a split may have larger blocks than the others.
TEST_P(GemmTest, StaysInsideItsWorkspace) {
  ThreadPool pool(2, limit_library_threads);
  for (const GemmShape& shape : {GemmShape{582, 200, 128, true}, GemmShape{582, 200, 1024},
                                 GemmShape{390, 200, 1024, true}, GemmShape{390, 200, 1024}}) {
    const Gemm gemm(shape, GetParam(), 2);
    Operands in(shape, 0);
    constexpr size_t kGuard = size_t{4} << 20;
    const Workspace workspace(gemm.workspace_bytes() + kGuard);
    const std::span guard(workspace.data() + gemm.workspace_bytes(), kGuard);
    std::fill(guard.begin(), guard.end(), std::byte{7});
    gemm.run(pool, in.a.data(), in.lda, in.b.data(), in.ldb, in.c.data(), in.ldc, {},
             workspace.data());
    EXPECT_EQ(std::count(guard.begin(), guard.end(), std::byte{7}), std::ssize(guard))
        << shape.m << " x " << shape.n << " x " << shape.k;
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, GemmTest, testing::ValuesIn(gemm_candidates({8, 8, 8})),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Bf16Gemm, MultipliesRoundedOperandsAndSumsInFloat) {
  if (!has_bf16()) GTEST_SKIP() << "this processor does not multiply bf16 numbers";
  const auto round = [](std::vector<float>& values) {
    for (float& value : values) value = artel::bfloat16_to_float(artel::float_to_bfloat16(value));
  };
  for (GemmShape shape : kGemmShapes) {
    for (const int layout : {0, 1, 2, 3}) {
      shape.transpose_a = layout & 1;
      shape.transpose_b = layout & 2;
      Operands in(shape, layout == 3 ? 5 : 0);
      const GemmEpilogue epilogue{.bias = in.bias.data(), .accumulate = true, .alpha = 0.5f};
      const std::vector<float> got = computed(shape, GemmAlgorithm::bf16, 2, in, epilogue);
      round(in.a);
      round(in.b);
      expect_close_by_scale(got, reference(shape, in, epilogue), 1e-6 * std::sqrt(shape.k + 1.0),
                            fmt::format("{}x{}x{} layout {}", shape.m, shape.n, shape.k, layout));
    }
  }
}

TEST(BatchedGemm, FollowsBothStrides) {
  const GemmShape shape{5, 7, 3, false, true};
  const int64_t outer = 3, inner = 2;
  // The layout of attention: heads interleaved inside each row.
  const std::vector<float> a = random_values(outer * 5 * inner * 3, 1, -1, 1);
  const std::vector<float> b = random_values(outer * 7 * inner * 3, 2, -1, 1);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads, limit_library_threads);
    const BatchedGemm gemm(shape, outer, inner, choose_gemm(shape), threads);
    const Workspace workspace(gemm.workspace_bytes());
    std::vector<float> c(outer * inner * 5 * 7);
    gemm.run(pool, a.data(), inner * 3, {5 * inner * 3, 3}, b.data(), inner * 3, {7 * inner * 3, 3},
             c.data(), 7, {inner * 35, 35}, {}, workspace.data());
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t j = 0; j < inner; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < 3; ++p) {
          sum += double(a[(i * 5 + 4) * 6 + j * 3 + p]) * b[(i * 7 + 6) * 6 + j * 3 + p];
        }
        EXPECT_NEAR(c[(i * inner + j) * 35 + 34], sum, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace artel::kernels
