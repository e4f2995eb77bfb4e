#include "artel/exec/kernels/gemm_packed.h"

#include <algorithm>
#include <array>
#include <span>

#include "artel/exec/kernels/gemm_panels.h"
#include "artel/exec/kernels/slots.h"

namespace artel::kernels {
namespace {

// Block sizes: kRows x kDepth of A take half of the L2 cache. With more rows than that, all panels
// of a block of B are packed first, into the L3 cache, and used for one block of rows after
// another; else kFewColumns are packed at a time, used for all rows while they are in the L2 cache.
constexpr int64_t kDepth = 384;
constexpr int64_t kRows = 144;
constexpr int64_t kColumns = 2048;
constexpr int64_t kFewColumns = 64;
constexpr int64_t kPackedRows = 4 * kRows;  // of a transposed A: long rows of memory are read once
constexpr int64_t kLine = 16;               // floats of a cache line

// Equal blocks of at most `most`.
int64_t block_size(int64_t n, int64_t most) {
  const int64_t blocks = std::max<int64_t>(1, divide_up(n, most));
  return std::max<int64_t>(1, divide_up(n, blocks));
}

// Packed rows, tiles and panels lie an odd number of cache lines apart, so that they do not compete
// for the same cache sets.
int64_t padded(int64_t floats) { return (floats + kLine - 1) / (2 * kLine) * (2 * kLine) + kLine; }

struct Blocks {
  int64_t rows, columns, depth;

  explicit Blocks(const GemmShape& shape)
      : rows(shape.transpose_a ? kRows : block_size(shape.m, kRows)),
        columns(std::min(shape.m <= kRows ? kFewColumns : kColumns, shape.n)),
        depth(block_size(shape.k, kDepth)) {}

  int64_t panel_stride() const { return padded(depth * panel_width()); }
  int64_t tile_stride() const { return padded(depth * tile_rows()); }
  int64_t row_stride() const { return padded(depth); }
  // Packed A: tiles when A is transposed (its columns are then contiguous), else copied rows.
  int64_t a_floats(const GemmShape& shape) const {
    if (!shape.transpose_a) return rows * row_stride();
    return divide_up(std::min(shape.m, kPackedRows), tile_rows()) * tile_stride();
  }
  int64_t b_floats() const { return panel_count(columns) * panel_stride(); }
};

// A stored matrix of which blocks are read: element (i, j) of op(matrix).
struct Operand {
  const float* data;
  int64_t stride;
  bool transposed;

  const float* at(int64_t i, int64_t j) const {
    return data + (transposed ? j * stride + i : i * stride + j);
  }
  // The memory of a block, to be fetched before it is read.
  Ahead block(int64_t i, int64_t j, int64_t rows, int64_t columns) const {
    if (transposed) std::swap(rows, columns);
    return {at(i, j), rows, stride, columns * static_cast<int64_t>(sizeof(float))};
  }
};

// Pointers to a block of rows of op(a), restricted to `depth` steps of k from `at` on.
class RowBlock {
 public:
  RowBlock(const Operand& a, int64_t m, const Blocks& blocks, float* packed)
      : a_(a), m_(m), blocks_(blocks), packed_(packed), step_(a.transposed ? tile_rows() : 1) {}

  std::span<const float* const> rows(int64_t count) const {
    return {rows_.data(), static_cast<size_t>(count)};
  }
  int64_t step() const { return step_; }

  // Packs what cannot be read in place: transposed rows, into tiles, and rows that lie a multiple
  // of 4 KiB apart and would compete for the same sets of the L1 cache.
  void load(int64_t first, int64_t count, int64_t at, int64_t depth) {
    if (a_.transposed) {
      const int64_t ahead = first % kPackedRows;
      if (ahead == 0) {
        pack_tiles(a_.at(first, at), a_.stride, depth, std::min(kPackedRows, m_ - first), packed_,
                   blocks_.tile_stride());
      }
      for (int64_t i = 0; i < count; ++i) {
        rows_[i] = packed_ + (ahead + i) / step_ * blocks_.tile_stride() + (ahead + i) % step_;
      }
      return;
    }
    const bool copy = a_.stride % 1024 == 0;
    for (int64_t i = 0; i < count; ++i) {
      rows_[i] = a_.at(first + i, at);
      if (!copy) continue;
      float* own = packed_ + i * blocks_.row_stride();
      std::copy_n(rows_[i], depth, own);
      rows_[i] = own;
    }
  }

 private:
  const Operand& a_;
  int64_t m_;
  const Blocks& blocks_;
  float* packed_;
  int64_t step_;
  std::array<const float*, kRows> rows_;
};

}  // namespace

size_t packed_workspace_floats(const GemmShape& shape) {
  const Blocks blocks(shape);
  return static_cast<size_t>(blocks.b_floats() + blocks.a_floats(shape));
}

void packed_product(const GemmShape& shape, const float* a, int64_t lda, const float* b,
                    int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& epilogue,
                    float* workspace) {
  const int64_t m = shape.m, n = shape.n, k = shape.k;
  const Blocks blocks(shape);
  const Operand left{a, lda, shape.transpose_a}, right{b, ldb, shape.transpose_b};
  const bool all_rows = m <= blocks.rows;
  float* panels = workspace;
  RowBlock block(left, m, blocks, workspace + blocks.b_floats());
  std::array<float*, kRows> c_rows;
  // One pass even when k = 0, which still owes the epilogue.
  for (int64_t at = 0; at < std::max<int64_t>(k, 1); at += blocks.depth) {
    const int64_t depth = std::min(blocks.depth, k - at);
    const Segment segment{0, 0, depth};
    const bool last = at + depth >= k;
    if (all_rows) block.load(0, m, at, depth);
    for (int64_t column = 0; column < n; column += blocks.columns) {
      const int64_t columns = std::min(blocks.columns, n - column);
      const int64_t next_column = column + columns;
      pack_panels(right.at(at, column), ldb, shape.transpose_b, depth, columns, panels,
                  blocks.panel_stride());
      for (int64_t row = 0; row < m; row += blocks.rows) {
        const int64_t rows = std::min(blocks.rows, m - row);
        if (!all_rows) block.load(row, rows, at, depth);
        for (int64_t i = 0; i < rows; ++i) c_rows[i] = c + (row + i) * ldc + column;
        Ahead ahead;
        if (all_rows && next_column < n) {
          ahead = right.block(at, next_column, depth, std::min(blocks.columns, n - next_column));
        } else if (row + rows < m && !shape.transpose_a) {
          ahead = left.block(row + rows, at, std::min(blocks.rows, m - row - rows), depth);
        }
        multiply_panels({.a = block.rows(rows),
                         .a_step = block.step(),
                         .c = {c_rows.data(), static_cast<size_t>(rows)},
                         .columns = columns,
                         .segments = {&segment, 1},
                         .panels = panels,
                         .panel_stride = blocks.panel_stride(),
                         .accumulate = at > 0 || epilogue.accumulate,
                         .alpha = epilogue.alpha,
                         .bias = last && epilogue.bias ? epilogue.bias + column : nullptr,
                         .relu = last && epilogue.relu,
                         .ahead = ahead});
      }
    }
  }
}

}  // namespace artel::kernels
