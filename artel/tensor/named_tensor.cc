#include "artel/tensor/named_tensor.h"

#include <cstring>

namespace artel {

Tensor tensor_over(const Bytes& bytes, Shape shape, DType type) {
  // Divided, not multiplied: a shape from a broken file may overflow.
  const auto elements = static_cast<uint64_t>(shape.elements());
  require(bytes.data.size() % size_of(type) == 0 && bytes.data.size() / size_of(type) == elements,
          ErrorKind::corrupt, "[{}] {} of shape {}: got {} bytes, expected {} elements of {} bytes",
          bytes.name, to_string(type), to_string(shape), bytes.data.size(), elements,
          size_of(type));
  auto* data = const_cast<std::byte*>(bytes.data.data());
  if (reinterpret_cast<uintptr_t>(data) % size_of(type) == 0)
    return Tensor(std::move(shape), type, data, bytes.keeper);
  Tensor copy(std::move(shape), type);
  std::memcpy(copy.raw(), data, bytes.data.size());
  return copy;
}

}  // namespace artel
