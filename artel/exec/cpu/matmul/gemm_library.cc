#include "artel/exec/cpu/matmul/gemm_library.h"

#include <cblas.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <limits>

#include "artel/exec/cpu/matmul/gemm_bf16.h"
#include "artel/exec/libraries.h"

namespace artel::kernels {

void library_product(GemmAlgorithm algorithm, const GemmShape& shape, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float* c, int64_t ldc,
                     const GemmEpilogue& epilogue, std::byte* workspace) {
  const auto [m, n, k, transpose_a, transpose_b] = shape;
  const float beta = epilogue.accumulate ? 1.f : 0.f;
  limit_library_threads();
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; i < m && !epilogue.accumulate; ++i) std::fill_n(c + i * ldc, n, 0.f);
  } else if (algorithm == GemmAlgorithm::openblas) {
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, m, n, k, epilogue.alpha, a, lda, b, ldb,
                beta, c, ldc);
  } else if (algorithm == GemmAlgorithm::bf16) {
    bf16_product(shape, a, lda, b, ldb, c, ldc, epilogue, workspace);
  } else {
    const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n,
                                            k, epilogue.alpha, a, lda, b, ldb, beta, c, ldc);
    if (status != dnnl_success) {
      fail_in_onednn(status, fmt::format("a product of {}x{} and {}x{}", m, k, k, n));
    }
  }
  const bool caps = epilogue.most < std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < m && (epilogue.bias || epilogue.relu || caps); ++i) {
    float* row = c + i * ldc;
    for (int64_t j = 0; j < n; ++j) {
      float value = epilogue.bias ? row[j] + epilogue.bias[j] : row[j];
      if (epilogue.relu) value = std::max(value, 0.f);
      row[j] = value > epilogue.most ? epilogue.most : value;
    }
  }
  if (epilogue.finish) epilogue.finish(c, m, n);
}

}  // namespace artel::kernels
