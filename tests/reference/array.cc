#include "tests/reference/array.h"

namespace artel::reference {

Array from_tensor(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::f64);
  const auto values = wide.values<double>();
  return {tensor.shape(), {values.begin(), values.end()}};
}

Tensor to_tensor(const Array& array) {
  Tensor tensor(array.shape);
  for (size_t i = 0; i < array.data.size(); ++i)
    tensor.values<float>()[i] = static_cast<float>(array.data[i]);
  return tensor;
}

Array zeros(const Shape& shape) {
  return {shape, std::vector<double>(static_cast<size_t>(shape.elements()), 0.0)};
}

size_t offset(const Shape& shape, const Index& index) {
  const int extra = static_cast<int>(index.size()) - shape.rank();
  int64_t at = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    at = at * shape[axis] + (shape[axis] == 1 ? 0 : index[static_cast<size_t>(axis + extra)]);
  return static_cast<size_t>(at);
}

Rows rows_of(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  const int64_t columns = shape.back();
  return {columns ? shape.elements() / columns : 0, columns};
}

}  // namespace artel::reference
