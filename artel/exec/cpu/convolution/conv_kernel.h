// Common parts of the implementations of a convolution pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

#include "artel/base/thread_pool.h"
#include "artel/exec/cpu/convolution/conv.h"

namespace artel::kernels {

struct ConvEpilogue {
  const float* bias = nullptr;  // one value for each output channel
  bool relu = false;
  float most = std::numeric_limits<float>::infinity();  // larger results become this
};

// Calls body(lane, first, count, at) for the items [first, first + count) of all lanes, of which
// each has `per_image` for each of its images. `first` then counts within the lane, `at` from the
// first item of the call.
template <typename Body>
void for_each_lane(std::span<const ConvLane> lanes, int64_t per_image, int64_t first, int64_t count,
                   const Body& body) {
  int64_t begin = 0;
  for (const ConvLane& lane : lanes) {
    const int64_t end = begin + lane.images * per_image;
    const int64_t from = std::max(first, begin), to = std::min(first + count, end);
    if (from < to) body(lane, from - begin, to - from, from - first);
    begin = end;
  }
}

inline int64_t images_of(std::span<const ConvLane> lanes) {
  int64_t images = 0;
  for (const ConvLane& lane : lanes) images += lane.images;
  return images;
}

// One pass of one convolution. The operands are x, w -> y (forward), dy, w -> dx (backward data) or
// x, dy -> dw (backward weights); only forward passes have an epilogue.
class ConvKernel {
 public:
  virtual ~ConvKernel() = default;
  virtual size_t workspace_bytes() const = 0;
  virtual std::string_view form() const { return {}; }
  // True if it applies `most`; if false, the caller does.
  virtual bool caps() const { return false; }
  virtual void run(ThreadPool& pool, const float* first, const float* second, float* out,
                   const ConvEpilogue& epilogue, std::byte* workspace) const = 0;
  // True if one of the next two functions may be called: the first for passes that produce images,
  // the other for gradients of weights. Both give the bits of `run`. Lanes may have different
  // numbers of images.
  virtual bool joins() const { return false; }
  // Images of several lanes, with the weights of the first.
  virtual void run_lanes(ThreadPool&, std::span<const ConvLane>, const ConvEpilogue&,
                         std::byte*) const {}
  // The sum over lanes, in the order of a tree (sum_passes.h), into the output of the first.
  virtual void run_sums(ThreadPool&, std::span<const ConvLane>, std::span<const int>,
                        std::byte*) const {}
};

}  // namespace artel::kernels
