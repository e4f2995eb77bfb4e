#include "artel/exec/kernels/gemm_packed.h"

#include <algorithm>
#include <array>

#include "artel/exec/kernels/gemm_panels.h"

namespace artel::kernels {
namespace {

// Block sizes: a panel of kDepth rows takes half of the L1 cache and is used for all rows of a
// block; kRows x kDepth of A take a quarter of the L2 cache; kColumns x kDepth of B go to the L3.
constexpr int64_t kDepth = 256;
constexpr int64_t kRows = 96;
constexpr int64_t kColumns = 1024;
constexpr int64_t kRowPadding = 16;  // keeps packed rows out of each other's cache sets

// k is cut into equal blocks of at most kDepth.
int64_t block_depth(int64_t k) {
  const int64_t blocks = std::max<int64_t>(1, (k + kDepth - 1) / kDepth);
  return (k + blocks - 1) / blocks;
}

// Packed A: panels when A is transposed (its columns are then contiguous), else padded rows.
int64_t packed_a_floats(const GemmShape& shape) {
  const int64_t depth = block_depth(shape.k), rows = std::min(kRows, shape.m);
  return shape.transpose_a ? panel_floats(depth, rows) : rows * (depth + kRowPadding);
}

int64_t packed_b_floats(const GemmShape& shape) {
  return panel_floats(block_depth(shape.k), std::min(kColumns, shape.n));
}

bool rows_collide(const GemmShape& shape, int64_t lda) {
  return lda % 256 == 0 && shape.n > panel_width();
}

// A block of rows of op(a), restricted to `depth` steps of k.
struct RowBlock {
  std::array<const float*, kRows> row;
  int64_t step;
};

RowBlock prepare_rows(const GemmShape& shape, const float* a, int64_t lda, int64_t rows,
                      int64_t depth, float* packed) {
  RowBlock block;
  if (shape.transpose_a) {
    const int64_t width = panel_width();
    pack_panels(a, lda, false, depth, rows, packed, depth * width);
    for (int64_t i = 0; i < rows; ++i) {
      block.row[i] = packed + i / width * depth * width + i % width;
    }
    block.step = width;
    return block;
  }
  const bool copy = rows_collide(shape, lda);
  for (int64_t i = 0; i < rows; ++i) {
    block.row[i] = a + i * lda;
    if (copy) {
      float* row = packed + i * (depth + kRowPadding);
      std::copy_n(block.row[i], depth, row);
      block.row[i] = row;
    }
  }
  block.step = 1;
  return block;
}

}  // namespace

size_t packed_workspace_floats(const GemmShape& shape) {
  return packed_b_floats(shape) + (packed_a_floats(shape) + 15) / 16 * 16;
}

void packed_product(const GemmShape& shape, const float* a, int64_t lda, const float* b,
                    int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& epilogue,
                    float* workspace) {
  const auto [m, n, k, transpose_a, transpose_b] = shape;
  const int64_t depth_step = std::max<int64_t>(1, block_depth(k));
  float* packed_b = workspace;
  float* packed_a = workspace + packed_b_floats(shape);
  std::array<float*, kRows> c_rows;
  for (int64_t column = 0; column < n; column += kColumns) {
    const int64_t columns = std::min(kColumns, n - column);
    // One pass even when k = 0, which still owes the epilogue.
    for (int64_t at = 0; at < std::max<int64_t>(k, 1); at += depth_step) {
      const int64_t depth = std::min(depth_step, k - at);
      pack_panels(transpose_b ? b + column * ldb + at : b + at * ldb + column, ldb, transpose_b,
                  depth, columns, packed_b, depth * panel_width());
      const Segment segment{0, 0, depth};
      const bool last = at + depth >= k;
      for (int64_t row = 0; row < m; row += kRows) {
        const int64_t rows = std::min(kRows, m - row);
        const RowBlock block =
            prepare_rows(shape, transpose_a ? a + at * lda + row : a + row * lda + at, lda, rows,
                         depth, packed_a);
        for (int64_t i = 0; i < rows; ++i) c_rows[i] = c + (row + i) * ldc + column;
        multiply_panels({.a = {block.row.data(), static_cast<size_t>(rows)},
                         .a_step = block.step,
                         .c = {c_rows.data(), static_cast<size_t>(rows)},
                         .columns = columns,
                         .segments = {&segment, 1},
                         .panels = packed_b,
                         .panel_stride = depth * panel_width(),
                         .accumulate = at > 0 || epilogue.accumulate,
                         .alpha = epilogue.alpha,
                         .bias = last && epilogue.bias ? epilogue.bias + column : nullptr,
                         .relu = last && epilogue.relu});
      }
    }
  }
}

}  // namespace artel::kernels
