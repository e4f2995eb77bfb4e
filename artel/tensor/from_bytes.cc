#include "artel/tensor/from_bytes.h"

#include <fmt/format.h>

#include <cstring>

namespace artel {
namespace {

constexpr int kMostAxes = 64;  // NumPy's limit; other formats have fewer

void require_inside(const Bytes& storage, const Shape& shape, int64_t storage_elements,
                    int64_t offset, const std::vector<int64_t>& strides) {
  bool inside = offset >= 0 && static_cast<int>(strides.size()) == shape.rank() &&
                shape.elements() <= storage_elements;
  int64_t last = offset;
  for (int axis = 0; inside && axis < shape.rank(); ++axis) {
    int64_t reach = 0;
    inside = strides[axis] >= 0 &&
             !__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) &&
             !__builtin_add_overflow(last, reach, &last);
  }
  require(inside && last < storage_elements, ErrorKind::corrupt,
          "[{}] shape {} with strides [{}] from element {} does not fit into {} elements",
          storage.name, to_string(shape), fmt::join(strides, ", "), offset, storage_elements);
}

// Copies the sub-array that starts at `from` to `to`, in row-major order. Returns the end of the
// copy.
std::byte* gather(const std::byte* from, std::byte* to, const Shape& shape,
                  const std::vector<int64_t>& strides, int axis, size_t size) {
  if (axis == shape.rank()) {
    std::memcpy(to, from, size);
    return to + size;
  }
  const auto step = static_cast<size_t>(strides[axis]) * size;
  for (int64_t i = 0; i < shape[axis]; ++i)
    to = gather(from + static_cast<size_t>(i) * step, to, shape, strides, axis + 1, size);
  return to;
}

}  // namespace

int64_t count_elements(const Bytes& bytes, const Shape& shape) {
  require(shape.rank() <= kMostAxes, ErrorKind::corrupt,
          "[{}] a shape of {} axes, expected at most {}", bytes.name, shape.rank(), kMostAxes);
  int64_t elements = 1;
  for (const int64_t extent : shape.extents())
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
      fail(ErrorKind::corrupt, "[{}] shape {}: the number of elements is negative or too large",
           bytes.name, to_string(shape));
  return elements;
}

Tensor tensor_over(const Bytes& bytes, Shape shape, DType type) {
  // Divides instead of multiplying, because a shape from a broken file may overflow.
  const auto elements = static_cast<uint64_t>(count_elements(bytes, shape));
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

Tensor strided_tensor(const Bytes& storage, Shape shape, DType type, int64_t offset,
                      const std::vector<int64_t>& strides) {
  const size_t size = size_of(type);
  const auto storage_elements = static_cast<int64_t>(storage.data.size() / size);
  if (count_elements(storage, shape) == 0) return Tensor(std::move(shape), type);
  require_inside(storage, shape, storage_elements, offset, strides);
  const size_t first = static_cast<size_t>(offset) * size;
  if (strides == row_major_strides(shape)) {
    const Bytes dense = storage.part(first, static_cast<size_t>(shape.elements()) * size);
    return tensor_over(dense, std::move(shape), type);
  }
  Tensor copy(shape, type);
  gather(storage.data.data() + first, copy.raw(), shape, strides, 0, size);
  return copy;
}

}  // namespace artel
