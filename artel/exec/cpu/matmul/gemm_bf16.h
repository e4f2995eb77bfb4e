// Matrix products of operands rounded to bf16, summed in f32, by oneDNN on one thread.
#pragma once

#include "artel/exec/cpu/matmul/gemm.h"

namespace artel::kernels {

size_t bf16_workspace_bytes(const GemmShape& shape);

// c = alpha * op(a) op(b) [+ c]; the rest of the epilogue is left to the caller.
void bf16_product(const GemmShape& shape, const float* a, int64_t lda, const float* b, int64_t ldb,
                  float* c, int64_t ldc, const GemmEpilogue& epilogue, std::byte* workspace);

}  // namespace artel::kernels
