// Initialisers of parameters.
//
//   const artel::Model zeros = artel::nn::dense(10, {.weight = artel::nn::constant(0)});
#pragma once

#include "artel/nn/layer.h"

namespace artel::nn {

Initialiser constant(float value);
Initialiser uniform(float low, float high);
Initialiser normal(float deviation);
// Normal, redrawn beyond two standard deviations.
Initialiser truncated_normal(float deviation);
// Uniform in +-1 / sqrt(fan_in), PyTorch's default for dense and convolution weights and biases. 0
// means the fan-in of the shape: the product of all extents except the first.
Initialiser fan_in_uniform(int64_t fan_in = 0);
// He et al.: normal with deviation sqrt(2 / fan_out).
Initialiser he_normal_fan_out();
// Glorot and Bengio: uniform in +-sqrt(6 / (fan_in + fan_out)).
Initialiser glorot_uniform();

}  // namespace artel::nn
