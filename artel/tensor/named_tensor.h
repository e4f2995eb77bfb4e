// A tensor under a name: an entry of a weight file.
#pragma once

#include <string>
#include <vector>

#include "artel/tensor/tensor.h"

namespace artel {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// In the order of the file or of the model.
using NamedTensors = std::vector<NamedTensor>;

}  // namespace artel
