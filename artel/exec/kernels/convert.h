// Arrays of f32 to and from the 16-bit formats; the same bits as the scalar functions of
// artel/tensor/dtype.h.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

void float_to_half(ThreadPool& pool, int64_t n, const float* x, uint16_t* y);
void half_to_float(ThreadPool& pool, int64_t n, const uint16_t* x, float* y);
void float_to_bfloat16(ThreadPool& pool, int64_t n, const float* x, uint16_t* y);
void bfloat16_to_float(ThreadPool& pool, int64_t n, const uint16_t* x, float* y);

}  // namespace artel::kernels
