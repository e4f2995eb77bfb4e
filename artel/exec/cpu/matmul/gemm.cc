#include "artel/exec/cpu/matmul/gemm.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "artel/exec/cpu/matmul/gemm_bf16.h"
#include "artel/exec/cpu/matmul/gemm_library.h"
#include "artel/exec/cpu/matmul/gemm_packed.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"
#include "artel/exec/cpu/matmul/gemm_sums.h"

namespace artel::kernels {

std::string_view to_string(GemmAlgorithm algorithm) {
  switch (algorithm) {
    case GemmAlgorithm::packed:
      return "packed";
    case GemmAlgorithm::onednn:
      return "onednn";
    case GemmAlgorithm::openblas:
      return "openblas";
    case GemmAlgorithm::bf16:
      return "bf16";
  }
  return "?";
}

namespace {

constexpr int64_t kLeastShared = 1'000'000;  // multiply-adds: about 20 microseconds

// Equal parts of n, all but the last multiples of `unit`.
int64_t part_size(int64_t n, int64_t parts, int64_t unit) {
  return ((n + parts - 1) / parts + unit - 1) / unit * unit;
}

}  // namespace

// Our kernel gives the same bits for any split of C. Threads share a product of many rows; of
// others each thread gets one block: of all grids take the one with the least work for a thread,
// the cost of an element read or packed being that of about 16 multiply-adds. Small products are
// not worth waking a thread for. The libraries get a split that does not depend on the threads.
Gemm::Grid::Grid(const GemmShape& shape, GemmAlgorithm algorithm, int threads)
    : rows(shape.m), columns(shape.n) {
  const int64_t width = panel_width();
  if (algorithm == GemmAlgorithm::packed && can_share(shape, threads)) {
    sharing = threads;
  } else if (algorithm != GemmAlgorithm::packed) {
    (shape.m > shape.n ? rows : columns) = part_size(std::max(shape.m, shape.n), 4, 4 * width);
  } else {
    if (shape.m * shape.n * shape.k < kLeastShared) threads = 1;
    int64_t best = std::numeric_limits<int64_t>::max();
    for (int parts = 1; parts <= threads; ++parts) {
      const int64_t part_rows = part_size(shape.m, parts, 6);
      const int64_t part_columns = part_size(shape.n, threads / parts, width);
      const int64_t cost = part_rows * part_columns + 16 * (part_rows + part_columns);
      if (cost < best) std::tie(best, rows, columns) = std::tuple(cost, part_rows, part_columns);
    }
  }
  rows = std::max<int64_t>(rows, 1);
  columns = std::max<int64_t>(columns, 1);
  parts_m = (shape.m + rows - 1) / rows;
  parts_n = (shape.n + columns - 1) / columns;
}

Gemm::Gemm(const GemmShape& shape, GemmAlgorithm algorithm, int threads, int lanes)
    : shape_(shape), algorithm_(algorithm), threads_(threads), lanes_(lanes) {}

size_t Gemm::part_bytes(const GemmShape& shape, const Grid& grid) const {
  const GemmShape part = {std::min(grid.rows, shape.m), std::min(grid.columns, shape.n), shape.k,
                          shape.transpose_a, shape.transpose_b};
  if (algorithm_ == GemmAlgorithm::packed) return sizeof(float) * packed_workspace_floats(part);
  return algorithm_ == GemmAlgorithm::bf16 ? bf16_workspace_bytes(part) : 0;
}

// The product of all lanes at once.
GemmShape Gemm::joint_shape() const {
  GemmShape shape = shape_;
  (joins_sums() ? shape.k : shape.m) *= lanes_;
  return shape;
}

bool Gemm::joins_rows() const { return algorithm_ == GemmAlgorithm::packed && !shape_.transpose_a; }

bool Gemm::joins_sums() const {
  return algorithm_ == GemmAlgorithm::packed && shape_.transpose_a && !shape_.transpose_b;
}

size_t Gemm::workspace_bytes() const {
  const Grid grid(shape_, algorithm_, threads_);
  size_t bytes = grid.parts_m * grid.parts_n * part_bytes(shape_, grid);
  if (grid.sharing > 1) bytes = sizeof(float) * packed_workspace_floats(shape_, grid.sharing);
  if (lanes_ == 1) return bytes;
  const GemmShape joint = joint_shape();
  if (joins_rows())
    bytes = std::max(bytes, sizeof(float) * packed_workspace_floats(joint) * threads_);
  if (joins_sums())
    bytes = std::max(bytes, sizeof(float) * packed_sums_workspace_floats(joint, lanes_) * threads_);
  return bytes;
}

void Gemm::run(ThreadPool& pool, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
               int64_t ldc, const GemmEpilogue& epilogue, std::byte* workspace) const {
  const GemmRows all = {a, c, shape_.m};
  if (algorithm_ == GemmAlgorithm::packed)
    return run_rows(pool, {&all, 1}, lda, b, ldb, ldc, epilogue, workspace);
  const Grid grid(shape_, algorithm_, threads_);
  const size_t bytes = part_bytes(shape_, grid);
  pool.run(grid.parts_m * grid.parts_n, [&](int64_t part) {
    const int64_t row = part / grid.parts_n * grid.rows,
                  column = part % grid.parts_n * grid.columns;
    GemmShape block = shape_;
    block.m = std::min(grid.rows, shape_.m - row);
    block.n = std::min(grid.columns, shape_.n - column);
    GemmEpilogue block_epilogue = epilogue;
    if (epilogue.bias) block_epilogue.bias += column;
    library_product(algorithm_, block, a + (shape_.transpose_a ? row : row * lda), lda,
                    b + (shape_.transpose_b ? column * ldb : column), ldb, c + row * ldc + column,
                    ldc, block_epilogue, workspace + part * bytes);
  });
}

void Gemm::run_rows(ThreadPool& pool, std::span<const GemmRows> lanes, int64_t lda, const float* b,
                    int64_t ldb, int64_t ldc, const GemmEpilogue& epilogue,
                    std::byte* workspace) const {
  GemmShape shape = shape_;
  shape.m = 0;
  for (const GemmRows& lane : lanes) shape.m += lane.rows;
  const Grid grid(shape, algorithm_, threads_);
  if (grid.sharing > 1) {
    return shared_product(pool, grid.sharing, shape, lanes, lda, b, ldb, ldc, epilogue,
                          reinterpret_cast<float*>(workspace));
  }
  if (grid.parts_m * grid.parts_n == 1) {
    return packed_product(shape, lanes, lda, b, ldb, ldc, epilogue,
                          reinterpret_cast<float*>(workspace));
  }
  const size_t bytes = part_bytes(shape, grid);
  pool.run(grid.parts_m * grid.parts_n, [&](int64_t part) {
    const int64_t row = part / grid.parts_n * grid.rows,
                  column = part % grid.parts_n * grid.columns;
    GemmShape block = shape;
    block.m = std::min(grid.rows, shape.m - row);
    block.n = std::min(grid.columns, shape.n - column);
    std::vector<GemmRows> rows;
    int64_t begin = 0;
    for (const GemmRows& lane : lanes) {
      const int64_t first = std::max(row, begin) - begin;
      const int64_t count = std::min(row + block.m, begin + lane.rows) - begin - first;
      if (count > 0)
        rows.push_back({lane.a + (shape.transpose_a ? first : first * lda),
                        lane.c + first * ldc + column, count});
      begin += lane.rows;
    }
    GemmEpilogue block_epilogue = epilogue;
    if (epilogue.bias) block_epilogue.bias += column;
    packed_product(block, rows, lda, b + (shape.transpose_b ? column * ldb : column), ldb, ldc,
                   block_epilogue, reinterpret_cast<float*>(workspace + part * bytes));
  });
}

void Gemm::run_sums(ThreadPool& pool, std::span<const GemmTerms> lanes, std::span<const int> merges,
                    int64_t lda, int64_t ldb, float* c, int64_t ldc, std::byte* workspace) const {
  const GemmShape joint = joint_shape();
  const Grid grid(joint, algorithm_, threads_);
  const size_t bytes = sizeof(float) * packed_sums_workspace_floats(joint, lanes_);
  pool.run(grid.parts_m * grid.parts_n, [&](int64_t part) {
    const int64_t row = part / grid.parts_n * grid.rows,
                  column = part % grid.parts_n * grid.columns;
    std::vector<GemmTerms> terms(lanes.begin(), lanes.end());
    for (GemmTerms& lane : terms) {
      lane.a += row;
      lane.b += column;
    }
    packed_sums(std::min(grid.rows, joint.m - row), std::min(grid.columns, joint.n - column), terms,
                merges, lda, ldb, c + row * ldc + column, ldc,
                reinterpret_cast<float*>(workspace + part * bytes));
  });
}

BatchedGemm::BatchedGemm(const GemmShape& shape, int64_t outer, int64_t inner,
                         GemmAlgorithm algorithm, int threads)
    : item_(shape, algorithm, 1), outer_(outer), inner_(inner), threads_(threads) {}

size_t BatchedGemm::workspace_bytes() const { return threads_ * item_.workspace_bytes(); }

void BatchedGemm::run(ThreadPool& pool, const float* a, int64_t lda, BatchStride a_stride,
                      const float* b, int64_t ldb, BatchStride b_stride, float* c, int64_t ldc,
                      BatchStride c_stride, const GemmEpilogue& epilogue,
                      std::byte* workspace) const {
  const int64_t items = outer_ * inner_;
  const auto offset = [&](BatchStride stride, int64_t item) {
    return item / inner_ * stride.outer + item % inner_ * stride.inner;
  };
  pool.run(threads_, [&](int64_t part) {
    for (int64_t item = items * part / threads_; item < items * (part + 1) / threads_; ++item) {
      item_.run(pool, a + offset(a_stride, item), lda, b + offset(b_stride, item), ldb,
                c + offset(c_stride, item), ldc, epilogue,
                workspace + part * item_.workspace_bytes());
    }
  });
}

GemmAlgorithm choose_gemm(const GemmShape& shape, int lanes) {
  // With so few rows packing B costs more than the product itself. Lanes pack it once.
  return shape.m * lanes <= 4 ? GemmAlgorithm::onednn : GemmAlgorithm::packed;
}

std::vector<GemmAlgorithm> gemm_candidates(const GemmShape&) {
  return {GemmAlgorithm::packed, GemmAlgorithm::onednn, GemmAlgorithm::openblas};
}

}  // namespace artel::kernels
