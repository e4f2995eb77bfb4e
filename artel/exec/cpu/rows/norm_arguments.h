// Arguments of the inner loops of the normalisation kernels.
#pragma once

#include <cstdint>

namespace artel::kernels {

// y = relu?((x - mean) * scale + beta + residual).
struct BatchNormForward {
  int64_t channels;
  bool relu;
  const float *x, *mean, *scale, *beta, *residual;
  float* y;
};

// dx = gradient * scale + (x - mean) * slope + shift, where gradient is dy where the result of the
// forward pass was positive (with relu), else dy.
struct BatchNormBackward {
  int64_t channels;
  bool relu;
  const float *dy, *x, *y, *mean, *scale, *beta;
  float* dresidual;
  const float *slope, *shift;
  float* dx;
};

// Layer norm, or RMS norm where `mean` is null. `gamma` and `beta` may be null.
struct RowNormForward {
  float epsilon;
  int64_t columns;
  const float *x, *gamma, *beta;
  float *y, *mean, *inv_std;
};

struct RowNormBackward {
  int64_t columns;
  const float *dy, *x, *gamma, *mean, *inv_std;
  float* dx;
  bool sums;  // whether the gradients of gamma and beta are wanted
};

}  // namespace artel::kernels
