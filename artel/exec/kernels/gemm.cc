#include "artel/exec/kernels/gemm.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "artel/exec/kernels/gemm_bf16.h"
#include "artel/exec/kernels/gemm_library.h"
#include "artel/exec/kernels/gemm_packed.h"
#include "artel/exec/kernels/gemm_panels.h"

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
Gemm::Gemm(const GemmShape& shape, GemmAlgorithm algorithm, int threads)
    : shape_(shape), algorithm_(algorithm), rows_(shape.m), columns_(shape.n) {
  const int64_t width = panel_width();
  if (algorithm == GemmAlgorithm::packed && can_share(shape, threads)) {
    sharing_ = threads;
    return;
  }
  if (algorithm != GemmAlgorithm::packed) {
    (shape.m > shape.n ? rows_ : columns_) = part_size(std::max(shape.m, shape.n), 4, 4 * width);
  } else {
    if (shape.m * shape.n * shape.k < kLeastShared) threads = 1;
    int64_t best = std::numeric_limits<int64_t>::max();
    for (int parts = 1; parts <= threads; ++parts) {
      const int64_t rows = part_size(shape.m, parts, 6);
      const int64_t columns = part_size(shape.n, threads / parts, width);
      const int64_t cost = rows * columns + 16 * (rows + columns);
      if (cost < best) std::tie(best, rows_, columns_) = std::tuple(cost, rows, columns);
    }
  }
  rows_ = std::max<int64_t>(rows_, 1);
  columns_ = std::max<int64_t>(columns_, 1);
}

size_t Gemm::part_bytes() const {
  const GemmShape part = {std::min(rows_, shape_.m), std::min(columns_, shape_.n), shape_.k,
                          shape_.transpose_a, shape_.transpose_b};
  if (algorithm_ == GemmAlgorithm::packed) return sizeof(float) * packed_workspace_floats(part);
  return algorithm_ == GemmAlgorithm::bf16 ? bf16_workspace_bytes(part) : 0;
}

int64_t Gemm::parts() const {
  return (shape_.m + rows_ - 1) / rows_ * ((shape_.n + columns_ - 1) / columns_);
}

size_t Gemm::workspace_bytes() const {
  if (sharing_ > 1) return sizeof(float) * packed_workspace_floats(shape_, sharing_);
  return parts() * part_bytes();
}

void Gemm::run(ThreadPool& pool, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
               int64_t ldc, const GemmEpilogue& epilogue, std::byte* workspace) const {
  if (sharing_ > 1) {
    return shared_product(pool, sharing_, shape_, a, lda, b, ldb, c, ldc, epilogue,
                          reinterpret_cast<float*>(workspace));
  }
  const int64_t parts_n = (shape_.n + columns_ - 1) / columns_;
  const size_t bytes = part_bytes();
  pool.run(parts(), [&](int64_t part) {
    const int64_t row = part / parts_n * rows_, column = part % parts_n * columns_;
    GemmShape block = shape_;
    block.m = std::min(rows_, shape_.m - row);
    block.n = std::min(columns_, shape_.n - column);
    const float* block_a = a + (shape_.transpose_a ? row : row * lda);
    const float* block_b = b + (shape_.transpose_b ? column * ldb : column);
    float* block_c = c + row * ldc + column;
    GemmEpilogue block_epilogue = epilogue;
    if (epilogue.bias) block_epilogue.bias += column;
    if (algorithm_ == GemmAlgorithm::packed) {
      packed_product(block, block_a, lda, block_b, ldb, block_c, ldc, block_epilogue,
                     reinterpret_cast<float*>(workspace + part * bytes));
    } else {
      library_product(algorithm_, block, block_a, lda, block_b, ldb, block_c, ldc, block_epilogue,
                      workspace + part * bytes);
    }
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

GemmAlgorithm choose_gemm(const GemmShape& shape) {
  // With so few rows packing B costs more than the product itself.
  return shape.m <= 4 ? GemmAlgorithm::onednn : GemmAlgorithm::packed;
}

std::vector<GemmAlgorithm> gemm_candidates(const GemmShape&) {
  return {GemmAlgorithm::packed, GemmAlgorithm::onednn, GemmAlgorithm::openblas};
}

}  // namespace artel::kernels
