#include "artel/tensor/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/error.h"

namespace artel {

int64_t Shape::elements() const {
  int64_t n = 1;
  for (const int64_t extent : extents_)
    if (extent < 0 || __builtin_mul_overflow(n, extent, &n))
      fail(ErrorKind::shape, "shape {}: the number of elements is negative or too large",
           to_string(*this));
  return n;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.extents(), ", "));
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.rank());
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b) {
  std::vector<int64_t> extents(std::max(a.rank(), b.rank()));
  for (int i = 0; i < static_cast<int>(extents.size()); ++i) {  // from the innermost axis
    const int64_t x = i < a.rank() ? a[a.rank() - 1 - i] : 1;
    const int64_t y = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    require(x == y || x == 1 || y == 1, ErrorKind::shape, "shapes {} and {} cannot be broadcast",
            to_string(a), to_string(b));
    extents[extents.size() - 1 - i] = x == 1 ? y : x;
  }
  return Shape(std::move(extents));
}

}  // namespace artel
