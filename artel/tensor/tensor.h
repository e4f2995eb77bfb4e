// A dense row-major array of one element type, used by users, files, and batches.
//
//   artel::Tensor pixels({2, 3});  // f32, zeroed
//   pixels.values<float>()[4] = 0.5f;
//   const artel::Tensor classes = artel::Tensor::from<int32_t>({2}, {0, 1});
//   const artel::Tensor second = pixels.rows(1, 2);  // shares the memory
//
// A Tensor is a cheap handle: copies share the memory, `clone` copies it. Memory is owned (64-byte
// aligned, zeroed) or borrowed from a keeper such as a mapped file, which lives as long as any
// handle. Not synchronised: writers need exclusive access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "artel/base/error.h"
#include "artel/tensor/dtype.h"
#include "artel/tensor/shape.h"

namespace artel {

class Tensor {
 public:
  // An empty tensor: shape [0], f32.
  Tensor();
  // Allocates zeroed memory.
  explicit Tensor(Shape shape, DType type = DType::f32);
  // A view of memory owned by `keeper`. `data` must hold bytes() bytes.
  Tensor(Shape shape, DType type, std::byte* data, std::shared_ptr<const void> keeper);

  template <typename T>
  static Tensor from(Shape shape, const std::vector<T>& values);

  const Shape& shape() const { return shape_; }
  DType dtype() const { return type_; }
  int64_t elements() const { return elements_; }
  size_t bytes() const { return static_cast<size_t>(elements_) * size_of(type_); }

  std::byte* raw() { return data_; }
  const std::byte* raw() const { return data_; }

  // The elements. Throws if T is not the element type.
  template <typename T>
  std::span<T> values();
  template <typename T>
  std::span<const T> values() const;

  Tensor clone() const;
  // The same memory under another shape with the same number of elements.
  Tensor reshaped(Shape shape) const;
  // Rows [begin, end) of the outermost axis, sharing the memory.
  Tensor rows(int64_t begin, int64_t end) const;
  // A new tensor with each value converted to another type.
  Tensor to(DType type) const;

 private:
  void check_type(DType asked) const;

  Shape shape_;
  DType type_ = DType::f32;
  int64_t elements_ = 0;
  std::byte* data_ = nullptr;
  std::shared_ptr<const void> keeper_;
};

// Allocates zeroed memory, aligned to 64 bytes. Large blocks request huge pages and take physical
// memory only when written.
std::shared_ptr<std::byte> allocate(size_t bytes);

template <typename T>
Tensor Tensor::from(Shape shape, const std::vector<T>& values) {
  Tensor tensor(std::move(shape), DTypeOf<T>::value);
  require(static_cast<size_t>(tensor.elements()) == values.size(), ErrorKind::shape,
          "tensor of shape {}: got {} values, expected {}", to_string(tensor.shape()),
          values.size(), tensor.elements());
  std::copy(values.begin(), values.end(), tensor.values<T>().begin());
  return tensor;
}

template <typename T>
std::span<T> Tensor::values() {
  check_type(DTypeOf<T>::value);
  return {reinterpret_cast<T*>(data_), static_cast<size_t>(elements_)};
}

template <typename T>
std::span<const T> Tensor::values() const {
  check_type(DTypeOf<T>::value);
  return {reinterpret_cast<const T*>(data_), static_cast<size_t>(elements_)};
}

}  // namespace artel
