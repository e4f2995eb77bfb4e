// Strided copies: transpose, slice, concatenate, broadcast.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// Side of the tiles in which matrices are transposed: the floats of a cache line.
inline constexpr int64_t kCopyTile = 16;

// y[strides_y] = x[strides_x] over the extents. A slice or a part of a concatenation is a
// pointer offset by the caller; a broadcast has stride 0 in x. Immutable after construction.
class CopyKernel {
 public:
  CopyKernel(const std::vector<int64_t>& extents, const std::vector<int64_t>& x_strides,
             const std::vector<int64_t>& y_strides);

  // The memory of x and y must not overlap, but for x == y with equal strides.
  void run(ThreadPool& pool, const float* x, float* y) const;

 private:
  struct Axis {
    int64_t extent, x, y;
  };

  void copy_rows(int64_t begin, int64_t end, const float* x, float* y) const;

  std::vector<Axis> outer_;
  int64_t outer_count_ = 1;
  // The inner loops copy rows x columns; columns is the axis along which y is densest.
  Axis rows_{1, 0, 0}, columns_{1, 1, 1};
  bool transposed_ = false;  // x is dense along rows, y along columns
};

// y += x, dense.
void add_into(ThreadPool& pool, int64_t n, const float* x, float* y);

}  // namespace artel::kernels
