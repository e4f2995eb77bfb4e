// Normalisation layers over dense matrices.
//
// Batch norm sees rows x channels (an NHWC image batch has images*height*width rows), layer and RMS
// norm rows x columns. Sums over rows are taken over fixed chunks that are added in order, so
// results do not depend on the number of threads. Each pass reads its inputs once from memory;
// batch norm needs two passes (statistics, then values) in each direction.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// Bytes of the workspace of every function here that takes one (aligned to 8 bytes).
int64_t norm_workspace_bytes(int64_t rows, int64_t channels);

struct BatchNormOptions {
  float epsilon = 1e-5f;
  bool relu = false;  // fused after the residual sum
};

// y = relu?(gamma * (x - mean) * inv_std + beta + residual).
// `gamma`, `beta` and `residual` may be null (1, 0, 0). Outputs for each channel: `mean`, `inv_std`
// for the backward pass and `variance` (biased; for running statistics), which may be null. `y` may
// be `x` only if x is not needed for the backward pass.
void batch_norm_training(ThreadPool& pool, const BatchNormOptions& options, int64_t rows,
                         int64_t channels, const float* x, const float* gamma, const float* beta,
                         const float* residual, float* y, float* mean, float* inv_std,
                         float* variance, void* workspace);

// Gradients of the above. With relu the mask is taken from `y`; without a residual `y` may be null,
// and is then recomputed from x, gamma and beta with the same bits, which saves reading it (2 of 7
// tensors). `dx`, `dgamma`, `dbeta` and `dresidual` may be null. `dresidual` (dy where y > 0) is
// null unless there was a residual; it may be `dy`, and `dx` may be `dy` if there is no
// `dresidual`.
void batch_norm_backward(ThreadPool& pool, const BatchNormOptions& options, int64_t rows,
                         int64_t channels, const float* dy, const float* x, const float* y,
                         const float* gamma, const float* beta, const float* mean,
                         const float* inv_std, float* dx, float* dgamma, float* dbeta,
                         float* dresidual, void* workspace);

// The forward form with running statistics. `y` may be `x` or `residual`.
void batch_norm_inference(ThreadPool& pool, const BatchNormOptions& options, int64_t rows,
                          int64_t channels, const float* x, const float* gamma, const float* beta,
                          const float* residual, const float* running_mean,
                          const float* running_variance, float* y, void* workspace);

// y = gamma * (x - mean) * inv_std + beta for each row; `gamma` and `beta` may be null. Saves mean
// and inv_std for each row.
void layer_norm(ThreadPool& pool, float epsilon, int64_t rows, int64_t columns, const float* x,
                const float* gamma, const float* beta, float* y, float* mean, float* inv_std);

// `dgamma` and `dbeta` may be null; `dx` may be `dy`.
void layer_norm_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                         const float* x, const float* gamma, const float* mean,
                         const float* inv_std, float* dx, float* dgamma, float* dbeta,
                         void* workspace);

// y = gamma * x * inv_rms, inv_rms = 1 / sqrt(mean(x^2) + epsilon), saved for each row.
void rms_norm(ThreadPool& pool, float epsilon, int64_t rows, int64_t columns, const float* x,
              const float* gamma, float* y, float* inv_rms);

void rms_norm_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                       const float* x, const float* gamma, const float* inv_rms, float* dx,
                       float* dgamma, void* workspace);

}  // namespace artel::kernels
