// Dropout without a stored mask.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// y[i] = x[i] / (1 - probability), or 0 where number i of the stream `Random(key)` is below the
// probability. The backward pass is the same call on the gradient with the same key. `y` may be
// `x`. Probability in [0, 1].
void dropout(ThreadPool& pool, uint64_t key, float probability, int64_t n, const float* x,
             float* y);

// Dropout of a part of a larger value, with the random numbers of the larger value. Rows have `n`
// elements, which start at `first` in rows of `all` elements.
struct DropoutRows {
  int64_t rows, n, all, first;
};
void dropout(ThreadPool& pool, uint64_t key, float probability, const DropoutRows& part,
             const float* x, float* y);

// The same in place, on this thread.
void dropout_row(uint64_t key, float probability, int64_t n, float* x);

}  // namespace artel::kernels
