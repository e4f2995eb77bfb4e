// The memory layout of a value: dense, with its axes in some order.
//
// Users, files, and graphs use PyTorch's axis order. Kernels may use another one. Images are stored
// as [batch, height, width, channels] and convolution weights as [height, width, in, out], so that
// a SIMD vector holds neighbouring channels (docs/decisions/0003).
//
//   const std::vector<int64_t> strides =
//       artel::strides_of({8, 3, 32, 32}, artel::Layout::channels_last());  // 3072, 1, 96, 3
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artel/tensor/shape.h"
#include "artel/tensor/split.h"
#include "artel/tensor/tensor.h"
#include "artel/tensor/tensor_source.h"

namespace artel {

class ThreadPool;

struct Layout {
  std::vector<int> order;  // axes, outermost in memory first; empty for row-major
  // Parameters only: shards that follow each other in memory, each with its axes in `order`.
  Split split = {};

  static Layout row_major() { return {}; }
  static Layout channels_last() { return {{0, 2, 3, 1}}; }
  static Layout convolution_weights() { return {{2, 3, 1, 0}}; }

  bool operator==(const Layout&) const = default;
};

// Strides in elements, by axis of the shape. For a split layout, the strides within one shard.
std::vector<int64_t> strides_of(const Shape& shape, const Layout& layout);

// True if both layouts place every element at the same offset, as when only axes of extent 1 move.
bool same_memory(const Shape& shape, const Layout& a, const Layout& b);

// Copies a dense f32 value from one layout to another. Other types are copied only if both layouts
// place every element at the same offset.
void convert_layout(ThreadPool& pool, const Shape& shape, DType type, const std::byte* from,
                    const Layout& from_layout, std::byte* to, const Layout& to_layout);

// Provides an f32 value, stored in any layout, as row-major bytes. Borrows `memory`, which must not
// change until the bytes have been written.
TensorSource source_of(std::string name, Shape shape, const Layout& layout,
                       std::span<const float> memory);

}  // namespace artel
