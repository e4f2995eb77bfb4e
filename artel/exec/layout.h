// How a value lies in memory: dense, with its axes nested in some order.
//
// Users, files and graphs speak of shapes in the order of PyTorch; kernels may want another order.
// Images are kept [batch, height, width, channels] and convolution weights
// [height, width, in, out] (docs/decisions/0003): one vector holds neighbouring channels.
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
  std::vector<int> order;  // axes of the shape, outermost in memory first; empty: as in the shape
  // Of parameters: shards that follow each other in memory, each with its axes in that order.
  Split split = {};

  static Layout row_major() { return {}; }
  static Layout channels_last() { return {{0, 2, 3, 1}}; }
  static Layout convolution_weights() { return {{2, 3, 1, 0}}; }

  bool operator==(const Layout&) const = default;
};

// The distance in elements between neighbours along each axis of the shape; of one shard, if it is
// split.
std::vector<int64_t> strides_of(const Shape& shape, const Layout& layout);

// Whether both put every element at the same place, as they do when only extents of 1 move.
bool same_memory(const Shape& shape, const Layout& a, const Layout& b);

// Copies a dense f32 value from one layout to another; i32 and u8 only if the memory is the same.
void convert_layout(ThreadPool& pool, const Shape& shape, DType type, const std::byte* from,
                    const Layout& from_layout, std::byte* to, const Layout& to_layout);

// Gives the row-major bytes of an f32 value that lies in memory in some layout. `memory` must live
// and stay the same until they have been written.
TensorSource source_of(std::string name, Shape shape, const Layout& layout,
                       std::span<const float> memory);

}  // namespace artel
