#include "artel/exec/cpu/matmul/gemm_sums.h"

#include <algorithm>
#include <array>
#include <vector>

#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_packed.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"
#include "artel/exec/cpu/rows/sum_passes.h"

namespace artel::kernels {
namespace {

constexpr int64_t kStackRows = 1024,
                  kStackColumns = 2048;  // of a block of C with a stack of its own
constexpr int64_t kTileFloats = 110592;  // of packed rows of A: most of the L2 cache
constexpr int64_t kPackedRows = 144;

int64_t packed_depth(int64_t k) { return std::min(k, kPackedDepth); }
int64_t panel_stride(int64_t depth) { return odd_lines(depth * panel_width()); }
int64_t tile_stride(int64_t depth) { return odd_lines(depth * tile_rows()); }

// Rows of A that are packed at a time.
int64_t rows_at_a_time(int64_t depth) {
  const int64_t most = kTileFloats / std::max<int64_t>(1, tile_stride(depth)) * tile_rows();
  return std::clamp(most, tile_rows(), kPackedRows);
}

// For at most m rows and `depth` terms.
int64_t a_floats(int64_t m, int64_t depth) {
  const int64_t all = divide_up(m, tile_rows()) * tile_stride(depth);
  return aligned_floats(std::min(all, kTileFloats + tile_stride(kPackedDepth)));
}
int64_t b_floats(int64_t depth, int64_t n) {
  return panel_count(std::min(n, kStackColumns)) * panel_stride(depth);
}

// A block of C and the stack of sums above it.
class SummedBlock {
 public:
  SummedBlock(int64_t m, int64_t n, int64_t lda, int64_t ldb, float* c, int64_t ldc,
              float* workspace)
      : m_(m), n_(n), lda_(lda), ldb_(ldb), c_(c), ldc_(ldc), tiles_(workspace) {}

  void run(std::span<const GemmTerms> lanes, std::span<const int> merges,
           std::span<const SumPass> passes, float* panels, float* stack) {
    panels_ = panels;
    stack_ = stack;
    for (const SumPass& pass : passes) {
      const std::span<const GemmTerms> own = lanes.subspan(pass.first, pass.last - pass.first);
      if (own.size() == 1)
        sum_lane(own[0], pass);
      else
        sum_lanes(own, merges_inside(pass, merges), pass);
    }
  }

 private:
  struct Level {
    float* c;
    int64_t stride;
  };
  Level level(int number) const {
    if (number == 0) return {c_, ldc_};
    return {stack_ + (number - 1) * m_ * n_, n_};
  }

  // A lane alone, block by block of k as packed_product takes them.
  void sum_lane(const GemmTerms& lane, const SumPass& pass) {
    const int64_t blocks = std::max<int64_t>(1, divide_up(lane.k, kPackedDepth));
    const int64_t depth = std::max<int64_t>(1, divide_up(lane.k, blocks));
    for (int64_t at = 0; at < std::max<int64_t>(lane.k, 1); at += depth) {
      const GemmTerms part = {lane.a + at * lda_, lane.b + at * ldb_, std::min(depth, lane.k - at)};
      const SumCut cut = {1, 0};
      multiply({&part, 1}, {&cut, 1}, pass, at > 0, at + depth >= lane.k);
    }
  }

  void sum_lanes(std::span<const GemmTerms> lanes, const std::vector<int>& merges,
                 const SumPass& pass) {
    std::vector<SumCut> cuts;
    for (size_t i = 0; i < lanes.size(); ++i)
      cuts.push_back({static_cast<int64_t>(i) + 1, merges[i]});
    multiply(lanes, cuts, pass, false, true);
  }

  void multiply(std::span<const GemmTerms> lanes, std::span<const SumCut> cuts, const SumPass& pass,
                bool accumulate, bool last) {
    int64_t depth = 0;
    std::vector<Segment> segments;
    for (const GemmTerms& lane : lanes) {
      segments.push_back({depth * tile_rows(), depth, lane.k});
      pack_panels(lane.b, ldb_, false, lane.k, n_, panels_ + depth * panel_width(),
                  stride_of(lanes));
      depth += lane.k;
    }
    const int64_t most = rows_at_a_time(depth), blocks = std::max<int64_t>(1, divide_up(m_, most));
    const int64_t rows = divide_up(divide_up(m_, blocks), tile_rows()) * tile_rows();
    for (int64_t row = 0; row < m_; row += rows) {
      const int64_t count = std::min(rows, m_ - row);
      int64_t at = 0;
      for (const GemmTerms& lane : lanes) {
        pack_tiles(lane.a + row, lda_, lane.k, count, tiles_ + at * tile_rows(),
                   tile_stride(depth));
        at += lane.k;
      }
      multiply_rows(row, count, depth, segments, cuts, pass, accumulate, last);
    }
  }

  static int64_t stride_of(std::span<const GemmTerms> lanes) {
    int64_t depth = 0;
    for (const GemmTerms& lane : lanes) depth += lane.k;
    return panel_stride(depth);
  }

  void multiply_rows(int64_t row, int64_t count, int64_t depth, std::span<const Segment> segments,
                     std::span<const SumCut> cuts, const SumPass& pass, bool accumulate,
                     bool last) {
    std::array<const float*, kPackedRows> a;
    std::array<float*, kPackedRows> c;
    const Level own = level(pass.level);
    for (int64_t i = 0; i < count; ++i) {
      a[i] = tiles_ + i / tile_rows() * tile_stride(depth) + i % tile_rows();
      c[i] = own.c + (row + i) * own.stride;
    }
    multiply_panels({.a = {a.data(), static_cast<size_t>(count)},
                     .a_step = tile_rows(),
                     .c = {c.data(), static_cast<size_t>(count)},
                     .columns = n_,
                     .segments = segments,
                     .cuts = cuts.size() > 1 ? cuts : std::span<const SumCut>(),
                     .panels = panels_,
                     .panel_stride = panel_stride(depth),
                     .accumulate = accumulate});
    if (!last) return;
    for (int merge = 0; merge < pass.merges; ++merge)
      add(level(pass.level - merge), level(pass.level - merge - 1), row, count);
  }

  void add(const Level& from, const Level& into, int64_t row, int64_t rows) const {
    for (int64_t i = row; i < row + rows; ++i) {
      const float* x = from.c + i * from.stride;
      float* y = into.c + i * into.stride;
      for (int64_t j = 0; j < n_; ++j) y[j] += x[j];
    }
  }

  int64_t m_, n_, lda_, ldb_;
  float* c_;
  int64_t ldc_;
  float *tiles_, *panels_ = nullptr, *stack_ = nullptr;
};

}  // namespace

size_t packed_sums_workspace_floats(const GemmShape& shape, int lanes) {
  const int64_t depth = packed_depth(shape.k);
  int64_t floats = a_floats(shape.m, depth) + b_floats(depth, shape.n);
  if (shape.k > kPackedDepth || most_levels(lanes) > kMostStackedSums)
    floats +=
        (most_levels(lanes) - 1) * std::min(shape.m, kStackRows) * std::min(shape.n, kStackColumns);
  return static_cast<size_t>(aligned_floats(floats));
}

void packed_sums(int64_t m, int64_t n, std::span<const GemmTerms> lanes,
                 std::span<const int> merges, int64_t lda, int64_t ldb, float* c, int64_t ldc,
                 float* workspace) {
  std::vector<int64_t> terms;
  int64_t depth = 0;
  for (const GemmTerms& lane : lanes) terms.push_back(lane.k);
  for (const int64_t k : terms) depth += k;
  const std::vector<SumPass> passes = sum_passes(terms, merges, kPackedDepth);
  // Without a stack, C is read and written once in any case, and B is best packed once.
  const int64_t rows = passes.size() > 1 ? kStackRows : std::max<int64_t>(1, m);
  float* const panels = workspace + a_floats(m, packed_depth(depth));
  float* const stack = panels + b_floats(packed_depth(depth), n);
  for (int64_t column = 0; column < n; column += kStackColumns)
    for (int64_t row = 0; row < m; row += rows) {
      std::vector<GemmTerms> part(lanes.begin(), lanes.end());
      for (GemmTerms& lane : part) {
        lane.a += row;
        lane.b += column;
      }
      SummedBlock(std::min(rows, m - row), std::min(kStackColumns, n - column), lda, ldb,
                  c + row * ldc + column, ldc, workspace)
          .run(part, merges, passes, panels, stack);
    }
}

}  // namespace artel::kernels
