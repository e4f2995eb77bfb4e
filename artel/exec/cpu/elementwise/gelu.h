// GELU together with its derivative, which costs hardly more than GELU alone.
#pragma once

#include <cstdint>

namespace artel::kernels {

enum class Gelu {
  exact,
  tanh,  // the approximation by a hyperbolic tangent
};

// x[0, n) becomes gelu(x), and slope[0, n) its derivative at x; null: not wanted.
void gelu_in_place(Gelu kind, float* x, float* slope, int64_t n);

}  // namespace artel::kernels
