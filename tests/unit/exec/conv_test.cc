#include "artel/exec/cpu/convolution/conv.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/exec/libraries.h"
#include "artel/exec/peak.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

struct Sizes {
  explicit Sizes(const ConvShape& s)
      : x(s.n * s.h * s.w * s.c),
        w(s.kh * s.kw * (s.c / s.groups) * s.k),
        y(s.n * s.out_h() * s.out_w() * s.k) {}
  int64_t x, w, y;
};

std::string describe(const ConvShape& s) {
  return fmt::format(
      "{}x{}x{}x{} -> {} kernel {}x{} stride {}x{} pad {},{},{},{} dilation {}x{} groups {}", s.n,
      s.h, s.w, s.c, s.k, s.kh, s.kw, s.stride_h, s.stride_w, s.pad_top, s.pad_left, s.pad_bottom,
      s.pad_right, s.dilation_h, s.dilation_w, s.groups);
}

// Calls visit(x, w, y) with the indices of each multiplication.
template <class Visit>
void for_each_product(const ConvShape& s, const Visit& visit) {
  const int64_t cg = s.c / s.groups, kg = s.k / s.groups;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t oy = 0; oy < s.out_h(); ++oy)
      for (int64_t ox = 0; ox < s.out_w(); ++ox)
        for (int64_t ky = 0; ky < s.kh; ++ky)
          for (int64_t kx = 0; kx < s.kw; ++kx) {
            const int64_t iy = oy * s.stride_h + ky * s.dilation_h - s.pad_top;
            const int64_t ix = ox * s.stride_w + kx * s.dilation_w - s.pad_left;
            if (iy < 0 || iy >= s.h || ix < 0 || ix >= s.w) continue;
            for (int64_t c = 0; c < cg; ++c)
              for (int64_t k = 0; k < s.k; ++k)
                visit(((n * s.h + iy) * s.w + ix) * s.c + k / kg * cg + c,
                      ((ky * s.kw + kx) * cg + c) * s.k + k,
                      ((n * s.out_h() + oy) * s.out_w() + ox) * s.k + k);
          }
}

// The operands in the order of the pass, and the exact result.
struct Case {
  Case(const ConvShape& s, ConvPass pass, bool epilogue) {
    const Sizes sizes(s);
    const std::vector<float> x = random_values(sizes.x, 1, -1, 1),
                             w = random_values(sizes.w, 2, -1, 1),
                             y = random_values(sizes.y, 3, -1, 1);
    std::vector<double> sum;
    if (pass == ConvPass::forward) {
      first = x, second = w;
      sum.resize(sizes.y);
      for_each_product(s, [&](int64_t i, int64_t j, int64_t o) { sum[o] += double(x[i]) * w[j]; });
    } else if (pass == ConvPass::backward_data) {
      first = y, second = w;
      sum.resize(sizes.x);
      for_each_product(s, [&](int64_t i, int64_t j, int64_t o) { sum[i] += double(y[o]) * w[j]; });
    } else {
      first = x, second = y;
      sum.resize(sizes.w);
      for_each_product(s, [&](int64_t i, int64_t j, int64_t o) { sum[j] += double(x[i]) * y[o]; });
    }
    if (epilogue) {
      bias = random_values(s.k, 4, -1, 1);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] = std::max(sum[i] + bias[i % s.k], 0.0);
    }
    expected.assign(sum.begin(), sum.end());
  }

  std::vector<float> first, second, bias, expected;
};

std::vector<float> computed(const ConvShape& shape, ConvPass pass, ConvAlgorithm algorithm,
                            int threads, const Case& in) {
  ThreadPool pool(threads, limit_library_threads);
  const Convolution convolution(shape, pass, algorithm, threads);
  const Workspace workspace(convolution.workspace_bytes());
  std::vector<float> out(in.expected.size(), NAN);
  const float *first = in.first.data(), *second = in.second.data();
  if (pass == ConvPass::forward) {
    convolution.forward(pool, first, second, in.bias.empty() ? nullptr : in.bias.data(),
                        !in.bias.empty(), out.data(), workspace.data());
  } else if (pass == ConvPass::backward_data) {
    convolution.backward_data(pool, first, second, out.data(), workspace.data());
  } else {
    convolution.backward_weights(pool, first, second, out.data(), workspace.data());
  }
  EXPECT_TRUE(workspace.tail_is_untouched()) << to_string(algorithm) << " " << describe(shape);
  return out;
}

double tolerance(ConvAlgorithm algorithm) {
  switch (algorithm) {
    case ConvAlgorithm::winograd4:
      return 3e-5;
    case ConvAlgorithm::bf16:
      return 2e-2;
    default:
      return 3e-6;
  }
}

const std::vector<ConvShape> kConvShapes = {{1, 1, 1, 1, 1, 1, 1},
                                            {2, 5, 7, 3, 5, 3, 3},
                                            {7, 4, 4, 20, 33, 3, 3, 1, 1, 1, 1, 1, 1},
                                            {13, 2, 2, 40, 24, 3, 3, 1, 1, 1, 1, 1, 1},
                                            {3, 13, 11, 17, 19, 3, 3, 1, 1, 1, 1, 1, 1},
                                            {5, 32, 32, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1},
                                            {2, 6, 5, 3, 4, 3, 3, 1, 1, 2, 0, 1, 2},
                                            {4, 9, 9, 16, 7, 3, 3, 2, 2, 1, 1, 1, 1},
                                            {2, 8, 8, 3, 64, 3, 3, 2, 2, 0, 0, 1, 1},
                                            {2, 28, 28, 1, 6, 5, 5, 1, 1, 2, 2, 2, 2},
                                            {3, 14, 14, 6, 16, 5, 5},
                                            {1, 23, 21, 3, 10, 7, 7, 2, 2, 3, 3, 3, 3},
                                            {2, 11, 10, 5, 9, 3, 2, 3, 1, 1, 0, 2, 1, 2, 3},
                                            {2, 7, 7, 8, 12, 1, 1},
                                            {2, 9, 8, 8, 12, 1, 1, 2, 2},
                                            {6, 16, 16, 2, 1, 1, 1, 2, 2},
                                            {2, 7, 7, 8, 12, 1, 1, 1, 1, 1, 1, 1, 1},
                                            {2, 6, 6, 8, 12, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 4},
                                            {2, 7, 6, 10, 10, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 10},
                                            {1, 9, 21, 29, 29, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 29},
                                            {2, 6, 19, 13, 13, 5, 5, 2, 2, 2, 2, 1, 3, 1, 2, 13},
                                            {0, 6, 6, 8, 12, 3, 3, 1, 1, 1, 1, 1, 1}};

class ConvTest : public testing::TestWithParam<ConvPass> {};

TEST_P(ConvTest, EveryAlgorithmMatchesTheReference) {
  for (const ConvShape& shape : kConvShapes) {
    for (const bool epilogue : {false, true}) {
      if (epilogue && GetParam() != ConvPass::forward) continue;
      const Case in(shape, GetParam(), epilogue);
      for (const ConvAlgorithm algorithm : conv_candidates(shape, GetParam(), false)) {
        for (const int threads : {1, 2}) {
          expect_close_by_scale(
              computed(shape, GetParam(), algorithm, threads, in), in.expected,
              tolerance(algorithm),
              fmt::format("{} {} {}", to_string(algorithm), describe(shape), epilogue));
        }
      }
    }
  }
}

// Small extents around vectors and blocks, every stride, padding, dilation and grouping; also
// images that end before their last window would, as transposed convolutions have them.
ConvShape random_shape(Random& random) {
  const auto up_to = [&](int64_t most) {
    return 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(most)));
  };
  for (;;) {
    ConvShape s{up_to(4), up_to(9), up_to(9), up_to(4), up_to(4), up_to(3), up_to(3)};
    if (random.below(3) == 0) s.kh = s.kw = 1;
    s.groups = random.below(3) == 0 ? up_to(3) : 1;
    if (random.below(3) == 0) s.c = up_to(20), s.k = up_to(20);
    if (random.below(3) == 0) s.h = up_to(20), s.w = up_to(20);
    s.c *= s.groups, s.k *= s.groups;
    s.stride_h = up_to(3), s.stride_w = up_to(3);
    s.dilation_h = up_to(3), s.dilation_w = up_to(3);
    s.pad_top = up_to(3) - 1, s.pad_left = up_to(3) - 1;
    s.pad_bottom = up_to(3) - 1, s.pad_right = up_to(3) - 1;
    if (random.below(2) == 0) s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = 0;
    if (random.below(3) == 0) {
      const int64_t extra_h = up_to(std::max(s.stride_h, s.dilation_h)) - 1;
      const int64_t extra_w = up_to(std::max(s.stride_w, s.dilation_w)) - 1;
      s.pad_bottom = s.pad_top - extra_h, s.pad_right = s.pad_left - extra_w;
      s.h = (up_to(4) - 1) * s.stride_h + s.dilation_h * (s.kh - 1) + 1 - s.pad_top - s.pad_bottom;
      s.w = (up_to(4) - 1) * s.stride_w + s.dilation_w * (s.kw - 1) + 1 - s.pad_left - s.pad_right;
      if (s.h < 1 || s.w < 1) continue;
    }
    const int64_t room_h = s.h + s.pad_top + s.pad_bottom - s.dilation_h * (s.kh - 1) - 1;
    const int64_t room_w = s.w + s.pad_left + s.pad_right - s.dilation_w * (s.kw - 1) - 1;
    if (room_h >= 0 && room_w >= 0) return s;
  }
}

TEST_P(ConvTest, RandomShapesMatchTheReference) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Random random{seed, 77};
    const ConvShape shape = random_shape(random);
    const bool epilogue = GetParam() == ConvPass::forward && seed % 2 == 0;
    const Case in(shape, GetParam(), epilogue);
    for (const ConvAlgorithm algorithm : conv_candidates(shape, GetParam(), false)) {
      const std::vector<float> one = computed(shape, GetParam(), algorithm, 1, in);
      const std::string what =
          fmt::format("{} {} seed {}", to_string(algorithm), describe(shape), seed);
      // Few products may cancel out, so the rounding error is large compared with their sum.
      expect_close_by_scale(one, in.expected, 10 * tolerance(algorithm), what);
      EXPECT_EQ(one, computed(shape, GetParam(), algorithm, 2, in)) << what;
    }
  }
}

TEST_P(ConvTest, Bf16IsCloseToTheReference) {
  if (!has_bf16()) GTEST_SKIP() << "this processor does not multiply bf16 numbers";
  for (const ConvShape& shape : kConvShapes) {
    const Case in(shape, GetParam(), false);
    expect_close_by_scale(computed(shape, GetParam(), ConvAlgorithm::bf16, 2, in), in.expected,
                          tolerance(ConvAlgorithm::bf16), describe(shape));
  }
}

TEST(Convolution, ResultsMayBeCapped) {
  constexpr float kMost = 0.25f;
  const std::vector<ConvShape> shapes = {{2, 7, 7, 8, 12, 1, 1},
                                         {2, 5, 7, 3, 9, 3, 3, 1, 1, 1, 1, 1, 1},
                                         {1, 4, 13, 11, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 11}};
  for (const ConvShape& shape : shapes) {
    const Case in(shape, ConvPass::forward, true);
    for (const ConvAlgorithm algorithm : conv_candidates(shape, ConvPass::forward, false)) {
      std::vector<float> expected = computed(shape, ConvPass::forward, algorithm, 2, in);
      for (float& value : expected) value = std::min(value, kMost);
      ThreadPool pool(2, limit_library_threads);
      const Convolution convolution(shape, ConvPass::forward, algorithm, 2);
      const Workspace workspace(convolution.workspace_bytes());
      std::vector<float> out(expected.size(), NAN);
      convolution.forward(pool, in.first.data(), in.second.data(), in.bias.data(), true, out.data(),
                          workspace.data(), kMost);
      EXPECT_EQ(out, expected) << to_string(algorithm) << " " << describe(shape);
    }
  }
}

TEST_P(ConvTest, BitsDoNotDependOnTheThreads) {
  for (const ConvShape& shape : kConvShapes) {
    const Case in(shape, GetParam(), false);
    for (const ConvAlgorithm algorithm : conv_candidates(shape, GetParam(), false)) {
      const std::vector<float> one = computed(shape, GetParam(), algorithm, 1, in);
      for (const int threads : {2, 3}) {
        EXPECT_EQ(one, computed(shape, GetParam(), algorithm, threads, in))
            << to_string(algorithm) << " " << describe(shape) << " threads " << threads;
      }
    }
  }
}

TEST_P(ConvTest, TheRuleChoosesACandidate) {
  for (const ConvShape& shape : kConvShapes) {
    for (const bool exact : {false, true}) {
      const std::vector<ConvAlgorithm> all = conv_candidates(shape, GetParam(), exact);
      EXPECT_EQ(std::ranges::count(all, choose_conv(shape, GetParam(), exact)), 1)
          << describe(shape);
      if (exact) {
        EXPECT_EQ(std::ranges::count(all, ConvAlgorithm::winograd2), 0);
        EXPECT_EQ(std::ranges::count(all, ConvAlgorithm::winograd4), 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, ConvTest,
                         testing::Values(ConvPass::forward, ConvPass::backward_data,
                                         ConvPass::backward_weights),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Convolution, RefusesAnAlgorithmThatDoesNotFit) {
  const ConvShape strided{1, 8, 8, 4, 4, 3, 3, 2, 2};
  EXPECT_THROW(Convolution(strided, ConvPass::forward, ConvAlgorithm::winograd4, 1), Error);
  EXPECT_THROW(Convolution(strided, ConvPass::forward, ConvAlgorithm::pointwise, 1), Error);
}

}  // namespace
}  // namespace artel::kernels
