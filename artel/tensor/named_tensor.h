// A named tensor, such as an entry of a weight file.
//
//   const artel::NamedTensors weights = artel::checkpoint::load_weights("model.safetensors");
//   if (const artel::Tensor* bias = artel::find_tensor(weights, "fc.bias"))
//     artel::println("{}", to_string(bias->shape()));
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "artel/tensor/tensor.h"

namespace artel {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Ordered as in the file or the model.
using NamedTensors = std::vector<NamedTensor>;

// Returns null for an unknown name.
inline const Tensor* find_tensor(const NamedTensors& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &found->tensor;
}

}  // namespace artel
