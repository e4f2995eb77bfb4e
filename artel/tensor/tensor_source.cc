#include "artel/tensor/tensor_source.h"

#include <cstring>

namespace artel {

std::vector<TensorSource> sources_of(const NamedTensors& tensors) {
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors)
    sources.push_back(
        {name, tensor.dtype(), tensor.shape(), [tensor = tensor](const TensorSource::Write& write) {
           write({tensor.raw(), tensor.bytes()});
         }});
  return sources;
}

NamedTensors tensors_of(const std::vector<TensorSource>& sources) {
  NamedTensors tensors;
  for (const TensorSource& source : sources) {
    Tensor tensor(source.shape, source.type);
    size_t at = 0;
    source.give([&](std::span<const std::byte> piece) {
      std::memcpy(tensor.raw() + at, piece.data(), piece.size());
      at += piece.size();
    });
    tensors.push_back({source.name, std::move(tensor)});
  }
  return tensors;
}

}  // namespace artel
