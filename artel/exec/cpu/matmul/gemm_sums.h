// Products whose sum over k is cut into lanes: C = the sum over lanes of A^T B, in the order of a
// tree (sum_passes.h), each lane with the bits of a packed product.
//
// Lanes with few terms are packed together and added in registers, so C is written once. Otherwise
// C is computed in blocks that stay in the L3 cache, with a stack of sums for each block.
#pragma once

#include <span>

#include "artel/exec/cpu/matmul/gemm.h"

namespace artel::kernels {

// Floats of workspace for at most this shape and this many lanes; shape.k counts the terms of all.
size_t packed_sums_workspace_floats(const GemmShape& shape, int lanes);

// In the calling thread; c is m x n.
void packed_sums(int64_t m, int64_t n, std::span<const GemmTerms> lanes,
                 std::span<const int> merges, int64_t lda, int64_t ldb, float* c, int64_t ldc,
                 float* workspace);

}  // namespace artel::kernels
