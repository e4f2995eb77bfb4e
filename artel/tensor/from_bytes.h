// Tensors made from the bytes of an untrusted file.
#pragma once

#include "artel/base/bytes.h"
#include "artel/tensor/tensor.h"

namespace artel {

// As Shape::elements, with an error of kind corrupt that names the bytes.
int64_t count_elements(const Bytes& bytes, const Shape& shape);

// A tensor over bytes that hold exactly its elements: a view that shares them if they are aligned
// for the type, a copy if not. Throws an Error of kind corrupt if the sizes differ.
Tensor tensor_over(const Bytes& bytes, Shape shape, DType type);

// The elements at offset + sum(index * stride) of a storage, offset and strides counted in
// elements: a view if they are dense and row-major, a copy if not. Throws an Error of kind corrupt
// if any element lies outside the storage, or if there are more elements than the storage has.
Tensor strided_tensor(const Bytes& storage, Shape shape, DType type, int64_t offset,
                      const std::vector<int64_t>& strides);

}  // namespace artel
