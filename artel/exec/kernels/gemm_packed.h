// The packed matrix product of one thread.
//
// B is packed block by block into panels that stay in the L2 and L3 caches; rows of A are read in
// place unless they are transposed or lie a multiple of 1 KiB apart, where they would compete for
// the same cache sets. Each value of C is summed in the order of k, in blocks fixed by k alone, so
// any split of C over threads gives the same bits.
#pragma once

#include <cstddef>

#include "artel/exec/kernels/gemm.h"

namespace artel::kernels {

// Floats of workspace for a product of at most this shape.
size_t packed_workspace_floats(const GemmShape& shape);

// `workspace` is aligned to 64 bytes.
void packed_product(const GemmShape& shape, const float* a, int64_t lda, const float* b,
                    int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& epilogue,
                    float* workspace);

}  // namespace artel::kernels
