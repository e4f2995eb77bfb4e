#include "artel/exec/cpu/matmul/gemm_panels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/matmul/gemm_panels.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kPanel = 2 * kLanes;

// A tile keeps all its sums in registers: 6 x 2 of 16, or 12 x 2 of 32 with AVX-512. A panel of one
// vector needs eight rows to cover the latency of the multiply-add units.
constexpr int kWideRows = kLanes >= 16 ? 12 : 6;
constexpr int kNarrowRows = 8;

// Sanitizers need minutes to compile unrolled loops.
constexpr int kUnroll = HWY_IS_ASAN || HWY_IS_TSAN ? 1 : 12;

// Finishes the sums of one vector of columns and stores them; `load` and `store` know how much of
// the vector is inside C.
template <int kRows, int kVectors, class Load, class Store>
HWY_INLINE void finish_column(const PanelProduct& p, int64_t row, int64_t column, int vector,
                              V (&sum)[kRows][kVectors], const Load& load, const Store& store) {
  const D d;
  const V alpha = hn::Set(d, p.alpha);
  const V bias = p.bias ? load(p.bias + column) : hn::Zero(d);
  HWY_UNROLL(kUnroll)
  for (int i = 0; i < kRows; ++i) sum[i][vector] = hn::MulAdd(sum[i][vector], alpha, bias);
  if (p.accumulate) {
    HWY_UNROLL(kUnroll)
    for (int i = 0; i < kRows; ++i) {
      sum[i][vector] = hn::Add(sum[i][vector], load(p.c[row + i] + column));
    }
  }
  if (p.relu) {  // zero first: a NaN stays a NaN
    HWY_UNROLL(kUnroll)
    for (int i = 0; i < kRows; ++i) sum[i][vector] = hn::Max(hn::Zero(d), sum[i][vector]);
  }
  if (p.most < std::numeric_limits<float>::infinity()) {
    const V most = hn::Set(d, p.most);
    HWY_UNROLL(kUnroll)
    for (int i = 0; i < kRows; ++i) sum[i][vector] = hn::Min(most, sum[i][vector]);
  }
  HWY_UNROLL(kUnroll)
  for (int i = 0; i < kRows; ++i) store(sum[i][vector], p.c[row + i] + column);
}

template <int kRows, int kVectors>
HWY_INLINE void store_tile(const PanelProduct& p, int64_t row, int64_t column,
                           V (&sum)[kRows][kVectors]) {
  const D d;
  HWY_UNROLL(kUnroll)
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = column + v * kLanes;
    if (first + kLanes <= p.columns) {
      finish_column(
          p, row, first, v, sum, [&](const float* at) HWY_ATTR { return hn::LoadU(d, at); },
          [&](V value, float* at) HWY_ATTR { hn::StoreU(value, d, at); });
    } else {
      // Masked stores are slow microcode on some processors.
      const int64_t count = p.columns - first;
      const auto inside = hn::FirstN(d, count);
      finish_column(
          p, row, first, v, sum,
          [&](const float* at) HWY_ATTR { return load_first(inside, at, count); },
          [&](V value, float* at) HWY_ATTR {
            HWY_ALIGN float values[kLanes];
            hn::Store(value, d, values);
            for (int64_t j = 0; j < count; ++j) at[j] = values[j];
          });
    }
  }
}

// Adds the products of one segment to the sums of a tile.
template <int kRows, int kVectors>
HWY_INLINE void add_segment(const Segment& segment, const float* const (&a)[kRows], int64_t step,
                            const float* panel, V (&sum)[kRows][kVectors]) {
  const D d;
  const float* HWY_RESTRICT b = panel + segment.b * kPanel;
  int64_t at = segment.a;
  for (int64_t k = 0; k < segment.length; ++k) {
    V right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::Load(d, b + v * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const V left = hn::Set(d, a[i][at]);
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
    at += step;
    b += kPanel;
  }
}

template <int kRows, int kVectors>
HWY_INLINE void compute_tile(const PanelProduct& p, int64_t row, int64_t column,
                             const float* panel) {
  const D d;
  const float* a[kRows];
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    a[i] = p.a[row + i];
    hwy::Prefetch(p.c[row + i] + column);
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  for (const Segment& segment : p.segments)
    add_segment<kRows, kVectors>(segment, a, p.a_step, panel, sum);
  store_tile<kRows, kVectors>(p, row, column, sum);
}

// Like compute_tile, for products whose sum over k is cut into parts. Finished parts wait on a
// stack, which stays in the L1 cache. Not inlined: next to this code, the compiler spills the row
// pointers of compute_tile, which costs it a tenth of its speed.
template <int kRows, int kVectors>
HWY_NOINLINE void compute_cut_tile(const PanelProduct& p, int64_t row, int64_t column,
                                   const float* panel) {
  const D d;
  const float* a[kRows];
  V sum[kRows][kVectors];
  HWY_ALIGN float stack[kMostStackedSums][kRows][kVectors * kLanes];
  for (int i = 0; i < kRows; ++i) {
    a[i] = p.a[row + i];
    hwy::Prefetch(p.c[row + i] + column);
  }
  int depth = 0;
  int64_t next = 0;
  for (size_t part = 0; part < p.cuts.size(); ++part) {
    const SumCut& cut = p.cuts[part];
    if (part > 0) {
      for (int i = 0; i < kRows; ++i)
        for (int v = 0; v < kVectors; ++v) hn::Store(sum[i][v], d, &stack[depth][i][v * kLanes]);
      ++depth;
    }
    for (int i = 0; i < kRows; ++i)
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
    for (; next < cut.segments; ++next)
      add_segment<kRows, kVectors>(p.segments[next], a, p.a_step, panel, sum);
    for (int merge = 0; merge < cut.merges; ++merge) {
      --depth;
      for (int i = 0; i < kRows; ++i)
        for (int v = 0; v < kVectors; ++v)
          sum[i][v] = hn::Add(hn::Load(d, &stack[depth][i][v * kLanes]), sum[i][v]);
    }
  }
  store_tile<kRows, kVectors>(p, row, column, sum);
}

// Touches memory that will be read soon, a few rows of it at each of `calls` calls.
class Prefetcher {
 public:
  Prefetcher(const Ahead& ahead, int64_t calls)
      : row_(reinterpret_cast<const char*>(ahead.first)),
        stride_(ahead.stride * static_cast<int64_t>(sizeof(float))),
        bytes_(ahead.bytes),
        left_(ahead.rows),
        each_((ahead.rows + calls - 1) / std::max<int64_t>(1, calls)) {}

  HWY_INLINE void advance() {
    for (const int64_t end = std::max<int64_t>(0, left_ - each_); left_ > end; --left_) {
      for (int64_t i = 0; i < bytes_; i += 64) __builtin_prefetch(row_ + i, 0, 2);
      row_ += stride_;
    }
  }

 private:
  const char* row_;
  int64_t stride_, bytes_, left_, each_;
};

// The rows [row, row + rows) of one panel, rows <= kRows.
template <int kRows, int kVectors>
void multiply_rows(const PanelProduct& p, int64_t row, int64_t rows, int64_t column,
                   const float* panel) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_rows<kRows - 1, kVectors>(p, row, rows, column, panel);
  }
  if (p.cuts.empty())
    compute_tile<kRows, kVectors>(p, row, column, panel);
  else
    compute_cut_tile<kRows, kVectors>(p, row, column, panel);
}

// Rows in tiles of nearly equal height.
template <int kRows, int kVectors>
void multiply_panel(const PanelProduct& p, int64_t column, const float* panel,
                    Prefetcher& prefetcher) {
  const int64_t rows = std::ssize(p.a), tiles = (rows + kRows - 1) / kRows;
  for (int64_t tile = 0, row = 0; tile < tiles; ++tile) {
    const int64_t next = rows * (tile + 1) / tiles;
    prefetcher.advance();
    multiply_rows<kRows, kVectors>(p, row, next - row, column, panel);
    row = next;
  }
}

void MultiplyPanels(const PanelProduct& p) {
  const float* panel = p.panels;
  const int64_t tiles = (std::ssize(p.a) + kWideRows - 1) / kWideRows;
  Prefetcher prefetcher(p.ahead, tiles * panel_count(p.columns));
  for (int64_t column = 0; column < p.columns; column += kPanel, panel += p.panel_stride) {
    if (p.columns - column > kLanes) {
      multiply_panel<kWideRows, 2>(p, column, panel, prefetcher);
    } else {
      multiply_panel<kNarrowRows, 1>(p, column, panel, prefetcher);
    }
  }
}

// out[p][j] = in[j][p] for a 4 x 4 block.
HWY_INLINE void transpose_block(const float* in, int64_t stride, float* out) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t p = 0; p < 4; ++p) {
    for (int64_t j = 0; j < 4; ++j) out[p * kPanel + j] = in[j * stride + p];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto r0 = hn::LoadU(d, in), r1 = hn::LoadU(d, in + stride);
  const auto r2 = hn::LoadU(d, in + 2 * stride), r3 = hn::LoadU(d, in + 3 * stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, out + kPanel);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, out + 2 * kPanel);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, out + 3 * kPanel);
#endif
}

void pack_transposed(const float* b, int64_t ldb, int64_t k, int64_t columns, float* panel) {
  const int64_t whole_k = k / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t j = 0; j < whole_columns; j += 4) {
    for (int64_t p = 0; p < whole_k; p += 4) {
      transpose_block(b + j * ldb + p, ldb, panel + p * kPanel + j);
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    float* out = panel + p * kPanel;
    for (int64_t j = p < whole_k ? whole_columns : 0; j < columns; ++j) out[j] = b[j * ldb + p];
    std::fill(out + columns, out + kPanel, 0.f);
  }
}

void PackPanels(const float* b, int64_t ldb, bool transposed, int64_t k, int64_t n, float* panels,
                int64_t panel_stride) {
  const D d;
  const int64_t whole = n / kPanel, rest = n % kPanel;
  const int64_t lower = std::min(rest, kLanes), higher = rest - lower;
  const auto low = hn::FirstN(d, lower), high = hn::FirstN(d, higher);
  if (transposed) {
    for (int64_t j = 0; j < panel_count(n); ++j) {
      pack_transposed(b + j * kPanel * ldb, ldb, k, std::min(kPanel, n - j * kPanel),
                      panels + j * panel_stride);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    const float* in = b + p * ldb;
    float* out = panels + p * kPanel;
    for (int64_t j = 0; j < whole; ++j, in += kPanel, out += panel_stride) {
      hn::Store(hn::LoadU(d, in), d, out);
      hn::Store(hn::LoadU(d, in + kLanes), d, out + kLanes);
    }
    if (rest > 0) {
      hn::Store(load_first(low, in, lower), d, out);
      hn::Store(higher > 0 ? load_first(high, in + kLanes, higher) : hn::Zero(d), d, out + kLanes);
    }
  }
}

// Eight rows of `a` at a time: they stay in the L1 cache while each tile gets a few whole lines.
void PackTiles(const float* a, int64_t lda, int64_t k, int64_t rows, float* tiles,
               int64_t tile_stride) {
  const int64_t whole = rows / kWideRows, rest = rows % kWideRows;
  for (int64_t first = 0; first < k; first += 8) {
    const int64_t last = std::min(k, first + 8);
    for (int64_t tile = 0; tile <= whole; ++tile) {
      const float* in = a + tile * kWideRows;
      float* out = tiles + tile * tile_stride;
      if (tile < whole) {
        for (int64_t p = first; p < last; ++p) {
          std::memcpy(out + p * kWideRows, in + p * lda, sizeof(float) * kWideRows);
        }
      } else if (rest > 0) {
        for (int64_t p = first; p < last; ++p) std::copy_n(in + p * lda, rest, out + p * kWideRows);
      }
    }
  }
}

int64_t PanelWidth() { return kPanel; }
int64_t TileRows() { return kWideRows; }

}  // namespace
}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(MultiplyPanels);
HWY_EXPORT(PackPanels);
HWY_EXPORT(PackTiles);
HWY_EXPORT(PanelWidth);
HWY_EXPORT(TileRows);

void multiply_panels(const PanelProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyPanels)(product); }

void pack_panels(const float* b, int64_t ldb, bool transposed, int64_t k, int64_t n, float* panels,
                 int64_t panel_stride) {
  HWY_DYNAMIC_DISPATCH(PackPanels)(b, ldb, transposed, k, n, panels, panel_stride);
}

void pack_tiles(const float* a, int64_t lda, int64_t k, int64_t rows, float* tiles,
                int64_t tile_stride) {
  HWY_DYNAMIC_DISPATCH(PackTiles)(a, lda, k, rows, tiles, tile_stride);
}

int64_t tile_rows() { return HWY_DYNAMIC_DISPATCH(TileRows)(); }

int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }

}  // namespace artel::kernels
#endif
