#include "artel/tensor/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace artel {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

template <typename T>
double load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double load_as_double(const std::byte* at, DType type) {
  switch (type) {
    case DType::f32:
      return load<float>(at);
    case DType::f64:
      return load<double>(at);
    case DType::f16: {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return half_to_float(bits);
    }
    case DType::bf16: {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return bfloat16_to_float(bits);
    }
    case DType::i8:
      return load<int8_t>(at);
    case DType::u8:
      return load<uint8_t>(at);
    case DType::i16:
      return load<int16_t>(at);
    case DType::i32:
      return load<int32_t>(at);
    case DType::i64:
      return load<int64_t>(at);
    case DType::boolean:
      return load<uint8_t>(at) != 0;
  }
  return 0;
}

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Clamps, because converting an out-of-range floating value to an integer is undefined.
template <typename T>
T to_integer(double value) {
  if (!(value > static_cast<double>(std::numeric_limits<T>::min())))
    return value != value ? T{0} : std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

void store_from_double(std::byte* at, DType type, double value) {
  switch (type) {
    case DType::f32:
      return store(at, static_cast<float>(value));
    case DType::f64:
      return store(at, value);
    case DType::f16:
      return store(at, float_to_half(static_cast<float>(value)));
    case DType::bf16:
      return store(at, float_to_bfloat16(static_cast<float>(value)));
    case DType::i8:
      return store(at, to_integer<int8_t>(value));
    case DType::u8:
      return store(at, to_integer<uint8_t>(value));
    case DType::i16:
      return store(at, to_integer<int16_t>(value));
    case DType::i32:
      return store(at, to_integer<int32_t>(value));
    case DType::i64:
      return store(at, to_integer<int64_t>(value));
    case DType::boolean:
      return store(at, static_cast<uint8_t>(value != 0));
  }
}

// Maps whole pages, which are zero and take physical memory only when written. Freeing them returns
// the memory at once. Uses huge pages except at the end, where one would be mostly empty.
std::shared_ptr<std::byte> allocate_pages(size_t bytes) {
  const auto page = static_cast<size_t>(::getpagesize());
  const size_t size = (bytes + page - 1) / page * page;
  void* const mapped =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(mapped) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + size, kHugePage - before);
  ::madvise(begin + before, size, MADV_HUGEPAGE);
  return {begin + before, [size](std::byte* p) { ::munmap(p, size); }};
}

}  // namespace

std::shared_ptr<std::byte> allocate(size_t bytes) {
  if (bytes >= kHugePage) return allocate_pages(bytes);
  const size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
  if (!data) throw std::bad_alloc();
  std::memset(data, 0, rounded);
  return {data, [](std::byte* p) { std::free(p); }};
}

Tensor::Tensor() : Tensor(Shape{0}) {}

Tensor::Tensor(Shape shape, DType type)
    : shape_(std::move(shape)), type_(type), elements_(shape_.elements()) {
  std::shared_ptr<std::byte> memory = allocate(bytes());
  data_ = memory.get();
  keeper_ = std::move(memory);
}

Tensor::Tensor(Shape shape, DType type, std::byte* data, std::shared_ptr<const void> keeper)
    : shape_(std::move(shape)),
      type_(type),
      elements_(shape_.elements()),
      data_(data),
      keeper_(std::move(keeper)) {}

Tensor Tensor::clone() const {
  Tensor copy(shape_, type_);
  std::memcpy(copy.raw(), raw(), bytes());
  return copy;
}

Tensor Tensor::reshaped(Shape shape) const {
  require(shape.elements() == elements_, ErrorKind::shape, "cannot reshape {} to {}",
          to_string(shape_), to_string(shape));
  return Tensor(std::move(shape), type_, data_, keeper_);
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  require(shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0], ErrorKind::shape,
          "rows [{}, {}) of a tensor of shape {}", begin, end, to_string(shape_));
  Shape shape = shape_;
  shape[0] = end - begin;
  const size_t row = shape_[0] ? bytes() / static_cast<size_t>(shape_[0]) : 0;
  return Tensor(std::move(shape), type_, data_ + row * static_cast<size_t>(begin), keeper_);
}

Tensor Tensor::to(DType type) const {
  if (type == type_) return clone();
  Tensor result(shape_, type);
  const size_t from = size_of(type_), into = size_of(type);
  for (int64_t i = 0; i < elements_; ++i)
    store_from_double(result.raw() + i * into, type, load_as_double(raw() + i * from, type_));
  return result;
}

void Tensor::check_type(DType asked) const {
  require(asked == type_ || (type_ == DType::boolean && asked == DType::u8),
          ErrorKind::invalid_argument, "tensor of type {} read as {}", to_string(type_),
          to_string(asked));
}

}  // namespace artel
