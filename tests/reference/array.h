// The arrays of the reference: plain, row-major, of doubles.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/tensor/shape.h"
#include "artel/tensor/tensor.h"

namespace artel::reference {

struct Array {  // row-major, in PyTorch's axis order
  Shape shape;
  std::vector<double> data;  // i32 and u8 values are held as doubles, too
};

Array from_tensor(const Tensor& tensor);  // any dtype
Tensor to_tensor(const Array& array);     // f32

Array zeros(const Shape& shape);

// The place of each element along each axis.
using Index = std::vector<int64_t>;

// Calls body(index) for every element of a shape, in row-major order.
template <typename Body>
void for_each_index(const Shape& shape, const Body& body) {
  Index index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t count = shape.elements(); count > 0; --count) {
    body(static_cast<const Index&>(index));
    for (int axis = shape.rank() - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis)
      index[axis] = 0;
  }
}

// Where the element at `index` of a larger shape lies in an array of `shape` that is broadcast to
// it: leading axes are left out, and axes of extent 1 stay at 0.
size_t offset(const Shape& shape, const Index& index);

// A negative axis counts from the end.
inline int axis_of(int64_t axis, const Shape& shape) {
  return static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
}

// An array seen as a matrix whose columns are the last axis (a scalar is one row of one).
struct Rows {
  int64_t rows, columns;
};
Rows rows_of(const Shape& shape);

}  // namespace artel::reference
