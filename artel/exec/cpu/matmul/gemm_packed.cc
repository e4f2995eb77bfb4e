#include "artel/exec/cpu/matmul/gemm_packed.h"

#include <algorithm>
#include <array>
#include <span>

#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"

namespace artel::kernels {
namespace {

// Block sizes. A block of A takes a quarter of the L2 cache if it is read in place, and most of it
// if it is packed or has all rows. Its depth along k is as large as that allows, because each block
// of k is a pass over C. All panels of a block of B are packed into the L3 cache first and then
// used for each block of rows. With few rows, one panel is packed at a time and used for all rows
// while it is in the L1 cache.
constexpr int64_t kBlock = 36864;  // floats
constexpr int64_t kDepth = 1536;
constexpr int64_t kFewRows = 192;
constexpr int64_t kColumns = 2048;

// Equal blocks of at most `most`.
int64_t block_size(int64_t n, int64_t most) {
  const int64_t blocks = std::max<int64_t>(1, divide_up(n, most));
  return std::max<int64_t>(1, divide_up(n, blocks));
}

struct Blocks {
  bool few_rows;
  int64_t depth, columns;
  int64_t most_rows;  // of a block, in this product or in one of fewer rows
  int64_t rows;

  explicit Blocks(const GemmShape& shape)
      : few_rows(shape.m <= kFewRows),
        depth(block_size(shape.k, shape.transpose_a ? kPackedDepth : kDepth)),
        columns(std::min(few_rows ? panel_width() : kColumns, shape.n)) {
    const int64_t most = std::clamp<int64_t>((shape.transpose_a ? 3 : 1) * kBlock / depth, 24, 144);
    most_rows = few_rows ? shape.m : most;
    rows = few_rows ? shape.m : block_size(shape.m, most);
  }

  int64_t panel_stride() const { return odd_lines(depth * panel_width()); }
  int64_t tile_stride() const { return odd_lines(depth * tile_rows()); }
  int64_t row_stride() const { return odd_lines(depth); }
  // Packed A: tiles when A is transposed (its columns are then contiguous), else copied rows.
  int64_t a_floats(const GemmShape& shape) const {
    if (!shape.transpose_a) return most_rows * row_stride();
    return divide_up(most_rows, tile_rows()) * tile_stride();
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

// The left factor and C: rows of one lane after another.
struct LaneRows {
  std::span<const GemmRows> lanes;
  int64_t lda, ldc;
  bool transposed;

  Operand left(const GemmRows& lane) const { return {lane.a, lda, transposed}; }
  // Calls body(lane, first, count, at) for the rows [row, row + rows): `first` counts within the
  // lane, `at` from `row`.
  template <typename Body>
  void for_each(int64_t row, int64_t rows, const Body& body) const {
    int64_t begin = 0;
    for (const GemmRows& lane : lanes) {
      const int64_t first = std::max(row, begin), last = std::min(row + rows, begin + lane.rows);
      if (first < last) body(lane, first - begin, last - first, first - row);
      begin += lane.rows;
    }
  }
};

// Pointers to a block of rows of op(a), restricted to `depth` steps of k from `at` on.
class RowBlock {
 public:
  RowBlock(const LaneRows& rows, const Blocks& blocks, float* packed)
      : source_(rows), blocks_(blocks), packed_(packed), step_(rows.transposed ? tile_rows() : 1) {}

  std::span<const float* const> rows(int64_t count) const {
    return {rows_.data(), static_cast<size_t>(count)};
  }
  int64_t step() const { return step_; }

  // Packs operands that cannot be read in place: transposed rows, into tiles, and rows that are a
  // multiple of 4 KiB apart and would compete for the same sets of the L1 cache.
  void load(int64_t first, int64_t count, int64_t at, int64_t depth) {
    if (source_.transposed) {
      const Operand a = source_.left(source_.lanes[0]);
      pack_tiles(a.at(first, at), a.stride, depth, count, packed_, blocks_.tile_stride());
      for (int64_t i = 0; i < count; ++i) {
        rows_[i] = packed_ + i / step_ * blocks_.tile_stride() + i % step_;
      }
      return;
    }
    const bool copy = source_.lda % 1024 == 0;
    source_.for_each(first, count, [&](const GemmRows& lane, int64_t from, int64_t n, int64_t to) {
      const Operand a = source_.left(lane);
      for (int64_t i = 0; i < n; ++i) {
        rows_[to + i] = a.at(from + i, at);
        if (!copy) continue;
        float* own = packed_ + (to + i) * blocks_.row_stride();
        std::copy_n(rows_[to + i], depth, own);
        rows_[to + i] = own;
      }
    });
  }

 private:
  const LaneRows& source_;
  const Blocks& blocks_;
  float* packed_;
  int64_t step_;
  std::array<const float*, kFewRows> rows_;
};

// The operands of a product, cut into blocks.
struct Product {
  const GemmShape& shape;
  LaneRows rows;
  Operand right;
  const GemmEpilogue& epilogue;
  Blocks blocks{shape};

  // Calls body(at, depth) for each block of k: once even when k = 0, which still owes the epilogue.
  template <typename Body>
  void for_each_depth(const Body& body) const {
    for (int64_t at = 0; at < std::max<int64_t>(shape.k, 1); at += blocks.depth)
      body(at, std::min(blocks.depth, shape.k - at));
  }

  void pack(int64_t at, int64_t depth, int64_t column, int64_t columns, float* panels) const {
    pack_panels(right.at(at, column), right.stride, right.transposed, depth, columns, panels,
                blocks.panel_stride());
  }

  // Adds the part of the sum from `at` on to the block of C at (row, column).
  void multiply(const RowBlock& block, int64_t row, int64_t count, int64_t at, int64_t depth,
                int64_t column, int64_t columns, const float* panels, const Ahead& ahead) const {
    std::array<float*, kFewRows> c_rows;
    rows.for_each(row, count, [&](const GemmRows& lane, int64_t from, int64_t n, int64_t to) {
      for (int64_t i = 0; i < n; ++i) c_rows[to + i] = lane.c + (from + i) * rows.ldc + column;
    });
    const Segment segment{0, 0, depth};
    const bool last = at + depth >= shape.k;
    multiply_panels({.a = block.rows(count),
                     .a_step = block.step(),
                     .c = {c_rows.data(), static_cast<size_t>(count)},
                     .columns = columns,
                     .segments = {&segment, 1},
                     .panels = panels,
                     .panel_stride = blocks.panel_stride(),
                     .accumulate = at > 0 || epilogue.accumulate,
                     .alpha = epilogue.alpha,
                     .bias = last && epilogue.bias ? epilogue.bias + column : nullptr,
                     .relu = last && epilogue.relu,
                     .most = last ? epilogue.most : std::numeric_limits<float>::infinity(),
                     .ahead = ahead});
    if (!last || !epilogue.finish) return;
    rows.for_each(row, count, [&](const GemmRows&, int64_t, int64_t n, int64_t to) {
      epilogue.finish(c_rows[to], n, columns);
    });
  }

  // The rows of A after a block, limited to one lane.
  Ahead next_rows(int64_t row, int64_t at, int64_t depth) const {
    if (row >= shape.m) {
      row = 0;
      at += depth;
      depth = std::min(depth, shape.k - at);
    }
    Ahead ahead;
    rows.for_each(row, std::min(blocks.rows, shape.m - row),
                  [&](const GemmRows& lane, int64_t from, int64_t n, int64_t to) {
                    if (to == 0) ahead = rows.left(lane).block(from, at, n, depth);
                  });
    return ahead;
  }
};

}  // namespace

size_t packed_workspace_floats(const GemmShape& shape, int threads) {
  // A part of a product may have few rows though the product has many.
  const auto floats = [threads](const GemmShape& part) {
    const Blocks blocks(part);
    return blocks.b_floats() + threads * blocks.a_floats(part);
  };
  GemmShape few = shape;
  few.m = std::min(shape.m, kFewRows);
  return static_cast<size_t>(std::max(floats(shape), floats(few)));
}

void packed_product(const GemmShape& shape, std::span<const GemmRows> lanes, int64_t lda,
                    const float* b, int64_t ldb, int64_t ldc, const GemmEpilogue& epilogue,
                    float* workspace) {
  const Product product{
      shape, {lanes, lda, ldc, shape.transpose_a}, {b, ldb, shape.transpose_b}, epilogue};
  const Blocks& blocks = product.blocks;
  const int64_t m = shape.m, n = shape.n;
  float* panels = workspace;
  RowBlock block(product.rows, blocks, workspace + blocks.b_floats());
  product.for_each_depth([&](int64_t at, int64_t depth) {
    if (blocks.few_rows) block.load(0, m, at, depth);
    for (int64_t column = 0; column < n; column += blocks.columns) {
      const int64_t columns = std::min(blocks.columns, n - column), next = column + columns;
      product.pack(at, depth, column, columns, panels);
      for (int64_t row = 0; row < m; row += blocks.rows) {
        const int64_t rows = std::min(blocks.rows, m - row);
        if (!blocks.few_rows) block.load(row, rows, at, depth);
        const Ahead ahead =
            blocks.few_rows && next < n
                ? product.right.block(at, next, depth, std::min(blocks.columns, n - next))
                : product.next_rows(row + rows, at, depth);
        product.multiply(block, row, rows, at, depth, column, columns, panels, ahead);
      }
    }
  });
}

bool can_share(const GemmShape& shape, int threads) {
  return threads > 1 && !shape.transpose_a && shape.m >= 4 * threads * kFewRows;
}

void shared_product(ThreadPool& pool, int threads, const GemmShape& shape,
                    std::span<const GemmRows> lanes, int64_t lda, const float* b, int64_t ldb,
                    int64_t ldc, const GemmEpilogue& epilogue, float* workspace) {
  const Product product{
      shape, {lanes, lda, ldc, shape.transpose_a}, {b, ldb, shape.transpose_b}, epilogue};
  const Blocks& blocks = product.blocks;
  float *panels = workspace, *packed_rows = workspace + blocks.b_floats();
  product.for_each_depth([&](int64_t at, int64_t depth) {
    for (int64_t column = 0; column < shape.n; column += blocks.columns) {
      const int64_t columns = std::min(blocks.columns, shape.n - column);
      const int64_t width = 4 * panel_width();
      pool.run(divide_up(columns, width), [&](int64_t part) {
        product.pack(at, depth, column + part * width, std::min(width, columns - part * width),
                     panels + part * 4 * blocks.panel_stride());
      });
      for_each_with_slot(
          pool, threads, divide_up(shape.m, blocks.rows), [&](int64_t slot, int64_t i) {
            const int64_t row = i * blocks.rows, rows = std::min(blocks.rows, shape.m - row);
            RowBlock block(product.rows, blocks, packed_rows + slot * blocks.a_floats(shape));
            block.load(row, rows, at, depth);
            product.multiply(block, row, rows, at, depth, column, columns, panels,
                             product.next_rows(row + threads * blocks.rows, at, depth));
          });
    }
  });
}

}  // namespace artel::kernels
