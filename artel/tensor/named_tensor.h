// A tensor under a name: an entry of a weight file.
#pragma once

#include <string>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/tensor/tensor.h"

namespace artel {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// In the order of the file.
using NamedTensors = std::vector<NamedTensor>;

// A tensor over bytes that hold exactly its elements: a view that shares them if they are aligned
// for the type, a copy if not.
Tensor tensor_over(const Bytes& bytes, Shape shape, DType type);

}  // namespace artel
