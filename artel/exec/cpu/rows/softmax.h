// Softmax over the last axis of dense rows x columns. Outputs may be the same memory as `x` or
// `dy`.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

void softmax(ThreadPool& pool, int64_t rows, int64_t columns, const float* x, float* y);
// dx = y * (dy - sum(dy * y)).
void softmax_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                      const float* y, float* dx);

void log_softmax(ThreadPool& pool, int64_t rows, int64_t columns, const float* x, float* y);
// dx = dy - exp(y) * sum(dy).
void log_softmax_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                          const float* y, float* dx);

}  // namespace artel::kernels
