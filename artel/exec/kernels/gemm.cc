#include "artel/exec/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>

#include "artel/exec/libraries.h"

namespace artel::kernels {

std::string_view to_string(GemmAlgorithm algorithm) {
  switch (algorithm) {
    case GemmAlgorithm::packed:
      return "packed";
    case GemmAlgorithm::onednn:
      return "onednn";
    case GemmAlgorithm::openblas:
      return "openblas";
  }
  return "?";
}

Gemm::Gemm(const GemmShape& shape, GemmAlgorithm algorithm, int threads)
    : shape_(shape), algorithm_(algorithm), parts_m_(1), parts_n_(threads) {}

size_t Gemm::workspace_bytes() const { return 0; }

void Gemm::run(ThreadPool&, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
               int64_t ldc, const GemmEpilogue& epilogue, std::byte*) const {
  const auto [m, n, k, transpose_a, transpose_b] = shape_;
  if (m == 0 || n == 0) return;
  limit_library_threads();
  if (k == 0 && !epilogue.accumulate) {
    for (int64_t i = 0; i < m; ++i) std::fill(c + i * ldc, c + i * ldc + n, 0.f);
  } else if (k > 0) {
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, m, n, k, epilogue.alpha, a, lda, b, ldb,
                epilogue.accumulate ? 1.f : 0.f, c, ldc);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float& value = c[i * ldc + j];
      if (epilogue.bias) value += epilogue.bias[j];
      if (epilogue.relu) value = std::max(value, 0.f);
    }
  }
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

GemmAlgorithm choose_gemm(const GemmShape&) { return GemmAlgorithm::packed; }

std::vector<GemmAlgorithm> gemm_candidates(const GemmShape&) {
  return {GemmAlgorithm::packed, GemmAlgorithm::onednn, GemmAlgorithm::openblas};
}

}  // namespace artel::kernels
