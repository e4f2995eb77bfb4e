// The part of the input that one output of a pooling layer sees.
#pragma once

#include <algorithm>

#include "artel/exec/cpu/rows/pool.h"

namespace artel::kernels {

struct PoolSpan {
  int64_t begin, end;   // inside the input
  int64_t padded_size;  // with the padding
};

inline PoolSpan pool_span(const PoolAxis& axis, int64_t i) {
  if (axis.kernel == 0) {
    const int64_t begin = i * axis.input / axis.output;
    const int64_t end = ((i + 1) * axis.input + axis.output - 1) / axis.output;
    return {begin, end, end - begin};
  }
  const int64_t begin = i * axis.stride - axis.padding;
  const int64_t end = std::min(begin + axis.kernel, axis.input + axis.padding);
  return {std::max<int64_t>(begin, 0), std::min(end, axis.input), end - begin};
}

// True if each input element belongs to exactly one window.
inline bool tiles_exactly(const PoolAxis& axis) {
  if (axis.kernel == 0) return axis.input % axis.output == 0;
  return axis.kernel == axis.stride && axis.padding == 0 && axis.output * axis.kernel == axis.input;
}

}  // namespace artel::kernels
