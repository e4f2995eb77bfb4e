// Column sums of a chunk of rows, for use inside HWY_NAMESPACE (see row_chunks.h).
#if defined(ARTEL_EXEC_KERNELS_ROW_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARTEL_EXEC_KERNELS_ROW_SUMS_INL_H_
#undef ARTEL_EXEC_KERNELS_ROW_SUMS_INL_H_
#else
#define ARTEL_EXEC_KERNELS_ROW_SUMS_INL_H_
#endif

#include "artel/exec/cpu/elementwise/loops-inl.h"
#include "artel/exec/cpu/rows/row_chunks.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// Adds terms(d, row, column, sums) for kRows rows to the single-precision sums of a tile.
template <int kRows, int kSums, class Terms>
HWY_INLINE void add_rows(int64_t row, int64_t column, int64_t width, float* tile, int64_t pitch,
                         const Terms& terms) {
  for_each_vector(width, [&](auto d, int64_t c) HWY_ATTR {
    hn::Vec<decltype(d)> sums[kSums];
    for (int s = 0; s < kSums; ++s) sums[s] = hn::LoadU(d, tile + s * pitch + c);
    for (int r = 0; r < kRows; ++r) terms(d, row + r, column + c, sums);
    for (int s = 0; s < kSums; ++s) hn::StoreU(sums[s], d, tile + s * pitch + c);
  });
}

// totals[s * columns + c] += the sums over the rows [begin, end) of what `terms` adds to sums[s].
// Four rows at a time keep the sums of a tile of columns in the first-level cache cheap; blocks of
// RowChunks::kBlock rows are added in double precision.
template <int kSums, class Terms>
HWY_INLINE void sum_rows(int64_t begin, int64_t end, int64_t columns, double* totals,
                         const Terms& terms) {
  constexpr int64_t kTile = 512;
  float tile[kSums * kTile];
  for (int64_t column = 0; column < columns; column += kTile) {
    const int64_t width = std::min(kTile, columns - column);
    for (int64_t block = begin; block < end; block += RowChunks::kBlock) {
      const int64_t block_end = std::min(end, block + RowChunks::kBlock);
      std::fill(tile, tile + kSums * kTile, 0.0f);
      int64_t row = block;
      for (; row + 4 <= block_end; row += 4)
        add_rows<4, kSums>(row, column, width, tile, kTile, terms);
      for (; row < block_end; ++row) add_rows<1, kSums>(row, column, width, tile, kTile, terms);
      for (int s = 0; s < kSums; ++s) {
        double* sums = totals + s * columns + column;
        for (int64_t c = 0; c < width; ++c) sums[c] += tile[s * kTile + c];
      }
    }
  }
}

// For each vector of columns, body(d, column) loads what belongs to the columns and returns a
// function of the row, which is called for the rows [begin, end). Four rows share a load.
template <class Body>
HWY_INLINE void for_each_row(int64_t begin, int64_t end, int64_t columns, const Body& body) {
  for (int64_t row = begin; row < end; row += 4) {
    const int64_t row_end = std::min(end, row + 4);
    for_each_vector(columns, [&](auto d, int64_t column) HWY_ATTR {
      const auto at_row = body(d, column);
      for (int64_t r = row; r < row_end; ++r) at_row(r);
    });
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
