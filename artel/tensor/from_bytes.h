// Tensors over the bytes of an untrusted file.
#pragma once

#include "artel/base/bytes.h"
#include "artel/tensor/tensor.h"

namespace artel {

// Like Shape::elements, but throws an Error of kind corrupt that names the file.
int64_t count_elements(const Bytes& bytes, const Shape& shape);

// A tensor over bytes that hold exactly its elements. Shares the bytes if they are aligned for the
// type; copies them otherwise. Throws an Error of kind corrupt if the sizes differ.
Tensor tensor_over(const Bytes& bytes, Shape shape, DType type);

// The elements at offset + sum(index * stride) of a storage; offset and strides count elements. A
// view if they are dense and row-major, a copy otherwise. Throws an Error of kind corrupt if any
// element lies outside the storage, or if the shape has more elements than the storage.
Tensor strided_tensor(const Bytes& storage, Shape shape, DType type, int64_t offset,
                      const std::vector<int64_t>& strides);

}  // namespace artel
