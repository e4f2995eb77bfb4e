#include "artel/exec/kernels/gemm_packed.h"

#include <algorithm>
#include <array>

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
constexpr int64_t kLine = 16;  // floats of a cache line

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
      : rows(std::min(kRows, divide_up(block_size(shape.m, kRows), tile_rows()) * tile_rows())),
        columns(std::min(shape.m <= kRows ? kFewColumns : kColumns, shape.n)),
        depth(block_size(shape.k, kDepth)) {}

  int64_t panel_stride() const { return padded(depth * panel_width()); }
  int64_t tile_stride() const { return padded(depth * tile_rows()); }
  int64_t row_stride() const { return padded(depth); }
  // Packed A: tiles when A is transposed (its columns are then contiguous), else copied rows.
  int64_t a_floats(bool transposed) const {
    return transposed ? divide_up(rows, tile_rows()) * tile_stride() : rows * row_stride();
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

// A block of rows of op(a), restricted to some steps of k.
struct RowBlock {
  std::array<const float*, kRows> row;
  int64_t step = 1;

  // Rows that lie a multiple of 4 KiB apart would compete for the same sets of the L1 cache: they
  // are copied. Transposed ones are packed into tiles.
  void prepare(const Operand& a, int64_t first, int64_t rows, int64_t at, int64_t depth,
               const Blocks& blocks, float* packed) {
    if (a.transposed) {
      step = tile_rows();
      pack_tiles(a.at(first, at), a.stride, depth, rows, packed, blocks.tile_stride());
      for (int64_t i = 0; i < rows; ++i)
        row[i] = packed + i / step * blocks.tile_stride() + i % step;
      return;
    }
    const bool copy = a.stride % 1024 == 0;
    for (int64_t i = 0; i < rows; ++i) {
      row[i] = a.at(first + i, at);
      if (!copy) continue;
      float* own = packed + i * blocks.row_stride();
      std::copy_n(row[i], depth, own);
      row[i] = own;
    }
  }
};

}  // namespace

size_t packed_workspace_floats(const GemmShape& shape) {
  const Blocks blocks(shape);
  return static_cast<size_t>(blocks.b_floats() + blocks.a_floats(shape.transpose_a));
}

void packed_product(const GemmShape& shape, const float* a, int64_t lda, const float* b,
                    int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& epilogue,
                    float* workspace) {
  const int64_t m = shape.m, n = shape.n, k = shape.k;
  const Blocks blocks(shape);
  const Operand left{a, lda, shape.transpose_a}, right{b, ldb, shape.transpose_b};
  const bool all_rows = m <= blocks.rows;
  float *panels = workspace, *packed_rows = workspace + blocks.b_floats();
  RowBlock block;
  std::array<float*, kRows> c_rows;
  // One pass even when k = 0, which still owes the epilogue.
  for (int64_t at = 0; at < std::max<int64_t>(k, 1); at += blocks.depth) {
    const int64_t depth = std::min(blocks.depth, k - at);
    const Segment segment{0, 0, depth};
    const bool last = at + depth >= k;
    if (all_rows) block.prepare(left, 0, m, at, depth, blocks, packed_rows);
    for (int64_t column = 0; column < n; column += blocks.columns) {
      const int64_t columns = std::min(blocks.columns, n - column);
      const int64_t next_column = column + columns;
      pack_panels(right.at(at, column), ldb, shape.transpose_b, depth, columns, panels,
                  blocks.panel_stride());
      for (int64_t row = 0; row < m; row += blocks.rows) {
        const int64_t rows = std::min(blocks.rows, m - row), next_row = row + rows;
        if (!all_rows) block.prepare(left, row, rows, at, depth, blocks, packed_rows);
        for (int64_t i = 0; i < rows; ++i) c_rows[i] = c + (row + i) * ldc + column;
        Ahead ahead;
        if (next_row < m)
          ahead = left.block(next_row, at, std::min(blocks.rows, m - next_row), depth);
        else if (all_rows && next_column < n)
          ahead = right.block(at, next_column, depth, std::min(blocks.columns, n - next_column));
        multiply_panels({.a = {block.row.data(), static_cast<size_t>(rows)},
                         .a_step = block.step,
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
