#include "artel/exec/plan/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/thread_pool.h"
#include "artel/exec/cpu/elementwise/copy.h"

namespace artel {

std::vector<int64_t> strides_of(const Shape& shape, const Layout& layout) {
  if (layout.order.empty()) return row_major_strides(shape);
  std::vector<int64_t> strides(shape.rank());
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int axis = layout.order[i];
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

namespace {

// False if the shards are consecutive along the outermost axis, which is the unsplit layout.
bool is_split(const Layout& layout) {
  const int outermost = layout.order.empty() ? 0 : layout.order.front();
  return layout.split.shards > 1 && (layout.split.axis != outermost || layout.split.blocks > 1);
}

// Position of one range of a shard in the unsplit value and in the sequence of shards.
struct RangePlace {
  Shape extents;
  std::vector<int64_t> strides;  // within the shard
  int64_t first = 0;             // index of the first element in the sequence of shards
};

RangePlace place_of(const Shape& shape, const Layout& layout, const SplitRange& range) {
  const Shape shard = shard_shape(shape, layout.split, range.shard);
  RangePlace place = {shard, strides_of(shard, {layout.order}), 0};
  place.extents[layout.split.axis] = range.extent;
  place.first = shard_begin(shape, layout.split, range.shard) +
                range.own * place.strides[static_cast<size_t>(layout.split.axis)];
  return place;
}

// Converts between a split and an unsplit layout.
void convert_shards(ThreadPool& pool, const Shape& shape, const float* from,
                    const Layout& from_layout, float* to, const Layout& to_layout) {
  const bool gathers = is_split(from_layout);
  const Layout &split = gathers ? from_layout : to_layout,
               &plain = gathers ? to_layout : from_layout;
  require(!is_split(plain), ErrorKind::internal, "[layout] got two layouts with shards");
  const std::vector<int64_t> strides = strides_of(shape, plain);
  for (const SplitRange& range : ranges_of(shape, split.split)) {
    const RangePlace place = place_of(shape, split, range);
    const int64_t whole = range.begin * strides[static_cast<size_t>(split.split.axis)];
    if (gathers)
      kernels::CopyKernel(place.extents.extents(), place.strides, strides)
          .run(pool, from + place.first, to + whole);
    else
      kernels::CopyKernel(place.extents.extents(), strides, place.strides)
          .run(pool, from + whole, to + place.first);
  }
}

// Row-major rows [begin, begin + count) of the first axis.
void copy_rows(ThreadPool& pool, const Shape& shape, const Layout& layout, const float* from,
               int64_t begin, int64_t count, float* to) {
  Shape part = shape;
  part[0] = count;
  const std::vector<int64_t> strides = row_major_strides(part);
  if (!is_split(layout)) {
    const std::vector<int64_t> own = strides_of(shape, layout);
    kernels::CopyKernel(part.extents(), own, strides).run(pool, from + begin * own[0], to);
    return;
  }
  const int axis = layout.split.axis;
  for (const SplitRange& range : ranges_of(shape, layout.split)) {
    RangePlace place = place_of(shape, layout, range);
    int64_t row = begin, at = axis == 0 ? 0 : range.begin;
    if (axis == 0) {
      row = std::max(begin, range.begin);
      place.extents[0] = std::min(begin + count, range.begin + range.extent) - row;
      if (place.extents[0] <= 0) continue;
      at = row - begin;
      row -= range.begin;
    } else {
      place.extents[0] = count;
    }
    kernels::CopyKernel(place.extents.extents(), place.strides, strides)
        .run(pool, from + place.first + row * place.strides[0],
             to + at * strides[static_cast<size_t>(axis)]);
  }
}

}  // namespace

bool same_memory(const Shape& shape, const Layout& a, const Layout& b) {
  if (a == b) return true;
  if (is_split(a) || is_split(b)) return false;
  const std::vector<int64_t> x = strides_of(shape, a), y = strides_of(shape, b);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] > 1 && x[axis] != y[axis]) return false;
  return true;
}

void convert_layout(ThreadPool& pool, const Shape& shape, DType type, const std::byte* from,
                    const Layout& from_layout, std::byte* to, const Layout& to_layout) {
  if (same_memory(shape, from_layout, to_layout)) {
    std::memcpy(to, from, static_cast<size_t>(shape.elements()) * size_of(type));
    return;
  }
  require(type == DType::f32, ErrorKind::internal,
          "[layout] cannot convert the layout of {} values, expected f32", to_string(type));
  if (is_split(from_layout) || is_split(to_layout))
    return convert_shards(pool, shape, reinterpret_cast<const float*>(from), from_layout,
                          reinterpret_cast<float*>(to), to_layout);
  kernels::CopyKernel(shape.extents(), strides_of(shape, from_layout), strides_of(shape, to_layout))
      .run(pool, reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to));
}

TensorSource source_of(std::string name, Shape shape, const Layout& layout,
                       std::span<const float> memory) {
  if (same_memory(shape, layout, Layout::row_major()))
    return {std::move(name), DType::f32, std::move(shape),
            [memory](const TensorSource::Write& write) { write(std::as_bytes(memory)); }};
  return {std::move(name), DType::f32, shape, [=](const TensorSource::Write& write) {
            // Rows of the outermost axis that fill one piece.
            const auto row = static_cast<size_t>(shape.elements() / shape[0]) * sizeof(float);
            const auto rows = static_cast<int64_t>(std::max<size_t>(1, kPieceBytes / row));
            std::vector<float> piece;
            ThreadPool here(1);
            for (int64_t begin = 0; begin < shape[0]; begin += rows) {
              const int64_t count = std::min(rows, shape[0] - begin);
              piece.resize(static_cast<size_t>(count) * row / sizeof(float));
              copy_rows(here, shape, layout, memory.data(), begin, count, piece.data());
              write(std::as_bytes(std::span(piece)));
            }
          }};
}

}  // namespace artel
