// Attention's operations on one row of scores.
#pragma once

#include <cstdint>

#include "artel/exec/cpu/rows/log_sum.h"

namespace artel::kernels {

// scores[0, seen) become exp(score - largest), those up to `columns` zero. Returns the logarithm of
// the sum of exp(score), infinity if there is none, and writes 1 / sum, or 0.
LogSum exponentials(float* scores, int64_t seen, int64_t columns, float* inverse_sum);

// scores[0, seen) become p = exp(score - log_sum), and products[0, seen), the gradients of p,
// become those of the scores before scaling: scale * p * (product - sum(p * product)). Up to
// `columns` both become zero.
void score_gradients(float* scores, float* products, int64_t seen, int64_t columns,
                     const LogSum& log_sum, float scale);

// x *= factor
void scale_row(float* x, int64_t n, float factor);

}  // namespace artel::kernels
