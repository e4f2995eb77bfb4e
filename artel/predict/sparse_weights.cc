#include "artel/predict/sparse_weights.h"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr std::string_view kNonzero = ".nonzero", kValues = ".values", kExtents = ".extents";

void append_without_zeros(const NamedTensor& dense, NamedTensors& result) {
  const auto values = dense.tensor.values<float>();
  Tensor bits({(dense.tensor.elements() + 7) / 8}, DType::u8);
  auto* const bytes = reinterpret_cast<uint8_t*>(bits.raw());
  std::vector<float> others;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::bit_cast<uint32_t>(values[i]) != 0) {  // -0 is kept
      bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1U << i % 8);
      others.push_back(values[i]);
    }
  const std::vector<int64_t>& extents = dense.tensor.shape().extents();
  result.push_back({dense.name + std::string(kNonzero), bits});
  result.push_back(
      {dense.name + std::string(kValues), Tensor::from<float>({std::ssize(others)}, others)});
  result.push_back(
      {dense.name + std::string(kExtents), Tensor::from<int64_t>({std::ssize(extents)}, extents)});
}

bool is_shorter_without_zeros(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32 || tensor.shape().rank() < 2) return false;
  const auto values = tensor.values<float>();
  const auto others = static_cast<size_t>(std::ranges::count_if(
      values, [](float value) { return std::bit_cast<uint32_t>(value) != 0; }));
  constexpr size_t kNames = 256;  // bytes for the names of three tensors instead of one
  return values.size() / 8 + others * sizeof(float) + kNames < tensor.bytes();
}

const Tensor& part_of(const NamedTensors& tensors, const std::string& name, std::string_view part,
                      DType type) {
  const Tensor* const found = find_tensor(tensors, name + std::string(part));
  require(found != nullptr && found->dtype() == type && found->shape().rank() == 1,
          ErrorKind::corrupt, "[sparse weight '{}'] {}{} is missing or not a list of {}", name,
          name, part, to_string(type));
  return *found;
}

// The shape, checked against the size of the bit mask before memory is allocated.
Shape shape_of(const std::string& name, const Tensor& extents, int64_t bytes) {
  int64_t elements = 1;
  std::vector<int64_t> all;
  for (const int64_t extent : extents.values<int64_t>()) {
    require(extent > 0 && extent <= 8 * bytes && elements <= 8 * bytes / extent, ErrorKind::corrupt,
            "[sparse weight '{}'] an extent of {} does not match a bit mask of {} bytes", name,
            extent, bytes);
    elements *= extent;
    all.push_back(extent);
  }
  require((elements + 7) / 8 == bytes, ErrorKind::corrupt,
          "[sparse weight '{}'] {} elements do not match a bit mask of {} bytes", name, elements,
          bytes);
  return Shape(std::move(all));
}

Tensor dense_tensor(const NamedTensors& tensors, const std::string& name) {
  const Tensor& bits = part_of(tensors, name, kNonzero, DType::u8);
  const Tensor& others = part_of(tensors, name, kValues, DType::f32);
  const Tensor& extents = part_of(tensors, name, kExtents, DType::i64);
  Tensor dense(shape_of(name, extents, bits.elements()));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(bits.raw());
  const auto from = others.values<float>();
  const auto to = dense.values<float>();
  size_t next = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = 0;
    if ((bytes[i / 8] >> i % 8 & 1) == 0) continue;
    require(next < from.size(), ErrorKind::corrupt,
            "[sparse weight '{}'] got {} values, expected one for each bit that is set", name,
            from.size());
    to[i] = from[next++];
  }
  require(next == from.size(), ErrorKind::corrupt,
          "[sparse weight '{}'] got {} values, expected {}, one for each bit that is set", name,
          from.size(), next);
  return dense;
}

}  // namespace

NamedTensors without_zeros(const NamedTensors& tensors) {
  NamedTensors result;
  for (const NamedTensor& each : tensors)
    if (is_shorter_without_zeros(each.tensor))
      append_without_zeros(each, result);
    else
      result.push_back(each);
  return result;
}

NamedTensors with_zeros(const NamedTensors& tensors) {
  std::set<std::string> parts;
  for (const NamedTensor& each : tensors) {
    if (!each.name.ends_with(kNonzero)) continue;
    const std::string name = each.name.substr(0, each.name.size() - kNonzero.size());
    parts.insert({name + std::string(kValues), name + std::string(kExtents)});
  }
  if (parts.empty()) return tensors;
  NamedTensors result;
  for (const NamedTensor& each : tensors) {
    if (parts.contains(each.name)) continue;
    if (!each.name.ends_with(kNonzero)) {
      result.push_back(each);
      continue;
    }
    const std::string name = each.name.substr(0, each.name.size() - kNonzero.size());
    result.push_back({name, dense_tensor(tensors, name)});
  }
  return result;
}

}  // namespace artel
