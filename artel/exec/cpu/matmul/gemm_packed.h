// The packed matrix product.
//
// B is packed block by block into panels that stay in the L2 and L3 caches; rows of A are read in
// place unless they are transposed or lie a multiple of 4 KiB apart, where they would compete for
// the same cache sets. Each value of C is summed in the order of k, in blocks fixed by k alone, so
// any split of C over threads gives the same bits.
#pragma once

#include <cstddef>
#include <span>

#include "artel/exec/cpu/matmul/gemm.h"

namespace artel::kernels {

// Steps of k whose operands are packed at a time when A is transposed.
inline constexpr int64_t kPackedDepth = 1024;

// Floats of workspace for a product of at most this shape, computed by this many threads together.
size_t packed_workspace_floats(const GemmShape& shape, int threads = 1);

// The product in the calling thread. shape.m rows lie in `lanes`, one lane after another; a
// transposed A has one lane. `workspace` is aligned to 64 bytes.
void packed_product(const GemmShape& shape, std::span<const GemmRows> lanes, int64_t lda,
                    const float* b, int64_t ldb, int64_t ldc, const GemmEpilogue& epilogue,
                    float* workspace);

// True if a product has enough rows for shared_product.
bool can_share(const GemmShape& shape, int threads);

// The product by all threads of the pool. They pack panels together, then take one block of rows
// after another, so that a thread delayed by other programs does less.
void shared_product(ThreadPool& pool, int threads, const GemmShape& shape,
                    std::span<const GemmRows> lanes, int64_t lda, const float* b, int64_t ldb,
                    int64_t ldc, const GemmEpilogue& epilogue, float* workspace);

}  // namespace artel::kernels
