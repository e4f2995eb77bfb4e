// Matrix products of oneDNN and OpenBLAS, one thread each.
#pragma once

#include "artel/exec/cpu/matmul/gemm.h"

namespace artel::kernels {

// Any algorithm but `packed`; only bf16 needs a workspace.
void library_product(GemmAlgorithm algorithm, const GemmShape& shape, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float* c, int64_t ldc,
                     const GemmEpilogue& epilogue, std::byte* workspace);

}  // namespace artel::kernels
