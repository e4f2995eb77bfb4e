// Kernels that run several lanes at once give each the bits that it gets alone, and sums over lanes
// those of adding lane by lane in the order of the tree.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "artel/exec/cpu/convolution/conv.h"
#include "artel/exec/cpu/matmul/gemm.h"
#include "artel/exec/cpu/rows/sum_passes.h"
#include "artel/exec/libraries.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

// Trees in postfix form over 2, 3, 5, 7 and 8 lanes.
const std::vector<std::vector<int>> kTrees = {
    {0, 1}, {0, 1, 1}, {0, 1, 0, 2, 1}, {0, 1, 0, 2, 0, 1, 2}, {0, 1, 0, 2, 0, 1, 0, 3}};

// Adds results in the order of a tree.
std::vector<float> tree_sum(const std::vector<std::vector<float>>& lanes,
                            const std::vector<int>& merges) {
  std::vector<std::vector<float>> stack;
  for (size_t i = 0; i < lanes.size(); ++i) {
    stack.push_back(lanes[i]);
    for (int merge = 0; merge < merges[i]; ++merge) {
      const std::vector<float> right = stack.back();
      stack.pop_back();
      for (size_t j = 0; j < right.size(); ++j) stack.back()[j] += right[j];
    }
  }
  EXPECT_EQ(stack.size(), 1u);
  return stack[0];
}

// Lanes of `most` rows and of one less, in turn.
std::vector<int64_t> uneven(size_t lanes, int64_t most) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < lanes; ++i)
    rows.push_back(i % 3 == 1 ? most : std::max<int64_t>(1, most - 1));
  return rows;
}

TEST(SumPasses, CutATreeIntoWholeSubtrees) {
  const std::vector<int> merges = {0, 1, 0, 2, 0, 1, 0, 3};
  const std::vector<int64_t> terms(8, 10);
  const auto ranges = [&](int64_t most) {
    std::vector<std::pair<int, int>> all;
    for (const SumPass& pass : sum_passes(terms, merges, most))
      all.emplace_back(pass.first, pass.last);
    return all;
  };
  using Ranges = std::vector<std::pair<int, int>>;
  EXPECT_EQ(ranges(80), (Ranges{{0, 8}}));
  EXPECT_EQ(ranges(79), (Ranges{{0, 4}, {4, 8}}));
  EXPECT_EQ(ranges(20), (Ranges{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(ranges(5).size(), 8u);
  for (const int64_t most : {80, 40, 20, 5}) {
    int level = 0;
    for (const SumPass& pass : sum_passes(terms, merges, most)) {
      EXPECT_EQ(pass.level, level);
      EXPECT_LT(level, most_levels(8));
      level += 1 - pass.merges;
      const std::vector<int> inside = merges_inside(pass, merges);
      EXPECT_EQ(std::accumulate(inside.begin(), inside.end(), 0), pass.last - pass.first - 1);
    }
    EXPECT_EQ(level, 1);
  }
}

TEST(LaneGemm, RowsOfLanesHaveTheirBits) {
  for (const GemmShape& shape :
       {GemmShape{5, 33, 70}, GemmShape{16, 300, 1024, false, true}, GemmShape{37, 100, 1700},
        GemmShape{250, 64, 40, false, true}, GemmShape{1, 17, 3}})
    for (const int threads : {1, 2, 3})
      for (const size_t count : {2, 3, 8}) {
        SCOPED_TRACE(fmt::format("{}x{}x{}, {} threads, {} lanes", shape.m, shape.n, shape.k,
                                 threads, count));
        ThreadPool pool(threads);
        const std::vector<int64_t> rows = uneven(count, shape.m);
        const std::vector<float> b = random_values(shape.n * shape.k, 1),
                                 bias = random_values(shape.n, 2);
        const int64_t ldb = shape.transpose_b ? shape.k : shape.n;
        std::vector<std::vector<float>> a, expected, got;
        std::vector<GemmRows> lanes;
        for (size_t i = 0; i < count; ++i) {
          a.push_back(random_values(rows[i] * shape.k, 10 + i));
          expected.emplace_back(rows[i] * shape.n);
          got.emplace_back(rows[i] * shape.n);
        }
        const GemmEpilogue epilogue = {.bias = bias.data(), .relu = true};
        for (size_t i = 0; i < count; ++i) {
          GemmShape own = shape;
          own.m = rows[i];
          const Gemm gemm(own, GemmAlgorithm::packed, threads);
          const Workspace workspace(gemm.workspace_bytes());
          gemm.run(pool, a[i].data(), shape.k, b.data(), ldb, expected[i].data(), shape.n, epilogue,
                   workspace.data());
          lanes.push_back({a[i].data(), got[i].data(), rows[i]});
        }
        const Gemm gemm(shape, GemmAlgorithm::packed, threads, static_cast<int>(count));
        ASSERT_TRUE(gemm.joins_rows());
        const Workspace workspace(gemm.workspace_bytes());
        gemm.run_rows(pool, lanes, shape.k, b.data(), ldb, shape.n, epilogue, workspace.data());
        EXPECT_EQ(got, expected);
        EXPECT_TRUE(workspace.tail_is_untouched());
      }
}

TEST(LaneGemm, SumsHaveTheBitsOfTheTree) {
  for (const auto& [m, n, k] : {std::tuple{70, 33, 5}, std::tuple{300, 2100, 16},
                                std::tuple{1100, 40, 300}, std::tuple{20, 50, 1500}})
    for (const int threads : {1, 2})
      for (const std::vector<int>& merges : kTrees) {
        SCOPED_TRACE(
            fmt::format("{}x{}x{}, {} threads, {} lanes", m, n, k, threads, merges.size()));
        ThreadPool pool(threads);
        const std::vector<int64_t> rows = uneven(merges.size(), k);
        std::vector<std::vector<float>> a, b, each;
        std::vector<GemmTerms> lanes;
        for (size_t i = 0; i < merges.size(); ++i) {
          a.push_back(random_values(rows[i] * m, 10 + i));
          b.push_back(random_values(rows[i] * n, 30 + i));
          each.emplace_back(int64_t{m} * n);
          const Gemm gemm({m, n, rows[i], true, false}, GemmAlgorithm::packed, threads);
          const Workspace workspace(gemm.workspace_bytes());
          gemm.run(pool, a[i].data(), m, b[i].data(), n, each[i].data(), n, {}, workspace.data());
        }
        for (size_t i = 0; i < merges.size(); ++i)
          lanes.push_back({a[i].data(), b[i].data(), rows[i]});
        const Gemm gemm({m, n, k, true, false}, GemmAlgorithm::packed, threads,
                        static_cast<int>(merges.size()));
        ASSERT_TRUE(gemm.joins_sums());
        const Workspace workspace(gemm.workspace_bytes());
        std::vector<float> sum(int64_t{m} * n);
        gemm.run_sums(pool, lanes, merges, m, n, sum.data(), n, workspace.data());
        EXPECT_EQ(sum, tree_sum(each, merges));
        EXPECT_TRUE(workspace.tail_is_untouched());
      }
}

const std::vector<ConvShape> kLaneShapes = {
    {.n = 3,
     .h = 8,
     .w = 8,
     .c = 16,
     .k = 32,
     .kh = 3,
     .kw = 3,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.n = 8,
     .h = 4,
     .w = 4,
     .c = 40,
     .k = 72,
     .kh = 3,
     .kw = 3,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.n = 8,
     .h = 2,
     .w = 2,
     .c = 48,
     .k = 20,
     .kh = 3,
     .kw = 3,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.n = 4,
     .h = 34,
     .w = 30,
     .c = 17,
     .k = 24,
     .kh = 3,
     .kw = 3,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.n = 5,
     .h = 14,
     .w = 14,
     .c = 64,
     .k = 48,
     .kh = 3,
     .kw = 3,
     .stride_h = 2,
     .stride_w = 2,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.n = 4, .h = 12, .w = 12, .c = 6, .k = 16, .kh = 5, .kw = 5},
    {.n = 3, .h = 7, .w = 7, .c = 32, .k = 96, .kh = 1, .kw = 1}};

// Images of uneven lanes. The rule for small maps must say the same for all of them.
std::vector<int64_t> images_of_lanes(const ConvShape& shape, size_t lanes) {
  if (shape.h <= 4) return std::vector<int64_t>(lanes, shape.n);
  return uneven(lanes, shape.n);
}

std::string name_of(const ConvShape& s, ConvPass pass, ConvAlgorithm algorithm) {
  return fmt::format("{} {} {}x{}x{}x{} to {}", to_string(algorithm), to_string(pass), s.n, s.h,
                     s.w, s.c, s.k);
}

// Calls test(shape, algorithm) for what can run several lanes.
template <typename Test>
void for_each_joint(ConvPass pass, const Test& test) {
  int joint = 0;
  for (const ConvShape& shape : kLaneShapes)
    for (const ConvAlgorithm algorithm : conv_candidates(shape, pass, false)) {
      if (!Convolution(shape, pass, algorithm, 1, 8, 8).joins()) continue;
      SCOPED_TRACE(name_of(shape, pass, algorithm));
      test(shape, algorithm);
      ++joint;
    }
  EXPECT_GE(joint, 8);
}

TEST(LaneConvolution, ImagesOfLanesHaveTheirBits) {
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data})
    for_each_joint(pass, [&](const ConvShape& shape, ConvAlgorithm algorithm) {
      for (const int threads : {1, 2})
        for (const size_t count : {2, 7}) {
          ThreadPool pool(threads, limit_library_threads);
          const bool forward = pass == ConvPass::forward;
          const int64_t x = shape.h * shape.w * shape.c;
          const int64_t y = shape.out_h() * shape.out_w() * shape.k;
          const std::vector<float> w = random_values(shape.kh * shape.kw * shape.c * shape.k, 1),
                                   bias = random_values(shape.k, 2);
          const float* b = forward ? bias.data() : nullptr;
          std::vector<std::vector<float>> in, expected, got;
          const std::vector<int64_t> images = images_of_lanes(shape, count);
          for (size_t i = 0; i < count; ++i) {
            in.push_back(random_values(images[i] * (forward ? x : y), 10 + i));
            expected.emplace_back(images[i] * (forward ? y : x));
            got.emplace_back(images[i] * (forward ? y : x));
            ConvShape own = shape;
            own.n = images[i];
            const Convolution conv(own, pass, algorithm, threads, 8);
            const Workspace workspace(conv.workspace_bytes());
            if (forward)
              conv.forward(pool, in[i].data(), w.data(), b, true, expected[i].data(),
                           workspace.data(), 1.5f);
            else
              conv.backward_data(pool, in[i].data(), w.data(), expected[i].data(),
                                 workspace.data());
          }
          std::vector<ConvLane> lanes;
          for (size_t i = 0; i < count; ++i)
            lanes.push_back({in[i].data(), w.data(), got[i].data(), images[i]});
          const Convolution conv(shape, pass, algorithm, threads, 8, static_cast<int>(count));
          const Workspace workspace(conv.workspace_bytes());
          if (forward)
            conv.run_lanes(pool, lanes, b, true, workspace.data(), 1.5f);
          else
            conv.run_lanes(pool, lanes, nullptr, false, workspace.data());
          EXPECT_EQ(got, expected) << threads << " threads, " << count << " lanes";
          EXPECT_TRUE(workspace.tail_is_untouched());
        }
    });
}

TEST(LaneConvolution, SumsHaveTheBitsOfTheTree) {
  const ConvPass pass = ConvPass::backward_weights;
  for_each_joint(pass, [&](const ConvShape& shape, ConvAlgorithm algorithm) {
    for (const int threads : {1, 2})
      for (const std::vector<int>& merges : kTrees) {
        ThreadPool pool(threads, limit_library_threads);
        const int64_t weights = shape.kh * shape.kw * shape.c * shape.k;
        const std::vector<int64_t> images = images_of_lanes(shape, merges.size());
        std::vector<std::vector<float>> x, dy, each;
        for (size_t i = 0; i < merges.size(); ++i) {
          x.push_back(random_values(images[i] * shape.h * shape.w * shape.c, 10 + i));
          dy.push_back(random_values(images[i] * shape.out_h() * shape.out_w() * shape.k, 30 + i));
          each.emplace_back(weights);
          ConvShape own = shape;
          own.n = images[i];
          const Convolution conv(own, pass, algorithm, threads, 8);
          const Workspace workspace(conv.workspace_bytes());
          conv.backward_weights(pool, x[i].data(), dy[i].data(), each[i].data(), workspace.data());
        }
        std::vector<float> sum(weights);
        std::vector<ConvLane> lanes;
        for (size_t i = 0; i < merges.size(); ++i)
          lanes.push_back({x[i].data(), dy[i].data(), sum.data(), images[i]});
        const Convolution conv(shape, pass, algorithm, threads, 8, static_cast<int>(merges.size()));
        const Workspace workspace(conv.workspace_bytes());
        conv.run_sums(pool, lanes, merges, workspace.data());
        EXPECT_EQ(sum, tree_sum(each, merges))
            << threads << " threads, " << merges.size() << " lanes";
        EXPECT_TRUE(workspace.tail_is_untouched());
      }
  });
}

}  // namespace
}  // namespace artel::kernels
