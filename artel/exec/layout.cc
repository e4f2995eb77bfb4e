#include "artel/exec/layout.h"

#include <cstring>
#include <numeric>

#include "artel/base/error.h"
#include "artel/exec/kernels/copy.h"

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

bool same_memory(const Shape& shape, const Layout& a, const Layout& b) {
  if (a == b) return true;
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
  require(type == DType::f32, ErrorKind::internal, "only f32 values change their layout, not {}",
          to_string(type));
  kernels::CopyKernel(kernels::CopyMode::assign, shape.extents(), strides_of(shape, from_layout),
                      strides_of(shape, to_layout))
      .run(pool, reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to));
}

}  // namespace artel
