#include "artel/exec/parameters.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"

namespace artel {

Parameters::Parameters(std::vector<ParameterEntry> entries) : entries_(std::move(entries)) {
  for (ParameterEntry& entry : entries_) {
    entry.offset = floats_;
    floats_ += (static_cast<size_t>(entry.shape.elements()) + 15) / 16 * 16;
  }
  memory_ = allocate(floats_ * sizeof(float));
}

bool Parameters::contains(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const ParameterEntry& entry) { return entry.name == name; });
}

const ParameterEntry& Parameters::entry(std::string_view name) const {
  std::vector<std::string> names;
  for (const ParameterEntry& entry : entries_) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail(ErrorKind::not_found, "no parameter '{}'{}", name, did_you_mean(name, names));
}

std::span<float> Parameters::values(const ParameterEntry& entry) {
  return {reinterpret_cast<float*>(memory_.get()) + entry.offset,
          static_cast<size_t>(entry.shape.elements())};
}

std::span<const float> Parameters::values(const ParameterEntry& entry) const {
  return const_cast<Parameters*>(this)->values(entry);
}

Tensor Parameters::get(std::string_view name) const {
  const ParameterEntry& e = entry(name);
  Tensor tensor(e.shape);
  ThreadPool here(1);
  convert_layout(here, e.shape, DType::f32, reinterpret_cast<const std::byte*>(values(e).data()),
                 e.layout, tensor.raw(), Layout::row_major());
  return tensor;
}

void Parameters::set(std::string_view name, const Tensor& value) {
  const ParameterEntry& e = entry(name);
  require(value.shape() == e.shape, ErrorKind::shape, "parameter '{}': got shape {}, expected {}",
          name, to_string(value.shape()), to_string(e.shape));
  const Tensor plain = value.dtype() == DType::f32 ? value : value.to(DType::f32);
  ThreadPool here(1);
  convert_layout(here, e.shape, DType::f32, plain.raw(), Layout::row_major(),
                 reinterpret_cast<std::byte*>(values(e).data()), e.layout);
}

}  // namespace artel
