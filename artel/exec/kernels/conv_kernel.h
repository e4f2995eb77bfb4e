// What the implementations of a convolution pass have in common.
#pragma once

#include <cstddef>
#include <limits>

#include "artel/base/thread_pool.h"
#include "artel/exec/kernels/conv.h"

namespace artel::kernels {

struct ConvEpilogue {
  const float* bias = nullptr;  // one value for each output channel
  bool relu = false;
  float most = std::numeric_limits<float>::infinity();  // larger results become this
};

// One pass of one convolution. The operands are x, w -> y (forward), dy, w -> dx (backward data) or
// x, dy -> dw (backward weights); only forward passes have an epilogue.
class ConvKernel {
 public:
  virtual ~ConvKernel() = default;
  virtual size_t workspace_bytes() const = 0;
  // Whether it obeys `most`; if not, the caller does.
  virtual bool caps() const { return false; }
  virtual void run(ThreadPool& pool, const float* first, const float* second, float* out,
                   const ConvEpilogue& epilogue, std::byte* workspace) const = 0;
};

}  // namespace artel::kernels
