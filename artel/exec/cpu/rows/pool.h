// Max and average pooling of NHWC images.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// One spatial axis. Window i of a plain axis begins at i * stride - padding; what lies outside of
// the input is ignored. Every window must touch the input.
struct PoolAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 0;  // 0: adaptive, window i is [floor(i*in/out), ceil((i+1)*in/out))
  int64_t stride = 1;
  int64_t padding = 0;

  // floor((input + 2 * padding - kernel) / stride) + 1 outputs.
  static PoolAxis windows(int64_t input, int64_t kernel, int64_t stride, int64_t padding = 0);
  static PoolAxis adaptive(int64_t input, int64_t output);
  static PoolAxis global(int64_t input) { return adaptive(input, 1); }
};

struct PoolShape {
  int64_t images = 1;
  PoolAxis height, width;
  int64_t channels = 1;

  int64_t input_elements() const { return images * height.input * width.input * channels; }
  int64_t output_elements() const { return images * height.output * width.output * channels; }
};

// `argmax` (one for each output) says which position of the window won, the first of equals; NaN
// wins. It may be null if there is no backward pass. Index is uint8_t for windows of at most 256
// elements (a quarter of the traffic), else int32_t.
template <typename Index>
void max_pool(ThreadPool& pool, const PoolShape& shape, const float* x, float* y, Index* argmax);
template <typename Index>
void max_pool_backward(ThreadPool& pool, const PoolShape& shape, const float* dy,
                       const Index* argmax, float* dx);

// With `count_include_pad` a window is divided by its size with the padding, else by the number of
// input elements in it.
void average_pool(ThreadPool& pool, const PoolShape& shape, bool count_include_pad, const float* x,
                  float* y);
void average_pool_backward(ThreadPool& pool, const PoolShape& shape, bool count_include_pad,
                           const float* dy, float* dx);

}  // namespace artel::kernels
