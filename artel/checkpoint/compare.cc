#include "artel/checkpoint/compare.h"

#include <cstring>
#include <map>

#include "artel/checkpoint/checkpoint.h"
#include "artel/checkpoint/weights.h"

namespace artel::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string kind_of(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.dtype()), to_string(tensor.shape()));
}

// "0.25 (0x3e800000)".
std::string show(const Tensor& tensor, int64_t index) {
  const size_t size = size_of(tensor.dtype());
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.raw() + static_cast<size_t>(index) * size, size);
  const Tensor element = tensor.reshaped({tensor.elements()}).rows(index, index + 1);
  const std::string value = is_floating(tensor.dtype()) && tensor.dtype() != DType::f64
                                ? fmt::format("{}", element.to(DType::f32).values<float>()[0])
                            : tensor.dtype() == DType::f64
                                ? fmt::format("{}", element.values<double>()[0])
                                : fmt::format("{}", element.to(DType::i64).values<int64_t>()[0]);
  return fmt::format("{} ({:#0{}x})", value, bits, 2 + 2 * size);
}

std::optional<Difference> compare_one(const std::string& name, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return Difference{name, -1, kind_of(a), kind_of(b)};
  if (std::memcmp(a.raw(), b.raw(), a.bytes()) == 0) return std::nullopt;
  const size_t size = size_of(a.dtype());
  int64_t index = 0;
  while (std::memcmp(a.raw() + index * size, b.raw() + index * size, size) == 0) ++index;
  return Difference{name, index, show(a, index), show(b, index)};
}

struct Content {
  NamedTensors tensors;  // weights, then optimizer state
  std::string state = {};
};

Content content_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {load_weights(path)};
  Checkpoint checkpoint = checkpoint_at(path);
  NamedTensors all = std::move(checkpoint.weights);
  for (NamedTensor& entry : checkpoint.optimizer)
    all.push_back({"optimizer: " + entry.name, entry.tensor});
  return {std::move(all), std::move(checkpoint.state)};
}

}  // namespace

std::string Difference::describe() const {
  const std::string where = index < 0 ? tensor : fmt::format("{}[{}]", tensor, index);
  return fmt::format("{}: {} and {}", where, first, second);
}

std::optional<Difference> compare(const NamedTensors& a, const NamedTensors& b) {
  std::map<std::string, const Tensor*> others;
  for (const NamedTensor& entry : b) others[entry.name] = &entry.tensor;
  for (const NamedTensor& entry : a) {
    const auto other = others.find(entry.name);
    if (other == others.end()) return Difference{entry.name, -1, kind_of(entry.tensor), "absent"};
    if (auto difference = compare_one(entry.name, entry.tensor, *other->second)) return difference;
    others.erase(other);
  }
  if (others.empty()) return std::nullopt;
  return Difference{others.begin()->first, -1, "absent", kind_of(*others.begin()->second)};
}

std::optional<Difference> compare_checkpoints(const fs::path& a, const fs::path& b) {
  Content first = content_of(a), second = content_of(b);
  std::optional<Difference> difference = compare(first.tensors, second.tensors);
  if (difference) {
    difference->first_state = std::move(first.state);
    difference->second_state = std::move(second.state);
  }
  return difference;
}

}  // namespace artel::checkpoint
