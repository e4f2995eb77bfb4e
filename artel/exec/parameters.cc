#include "artel/exec/parameters.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"

namespace artel {

size_t shard_offset(const ValueData& value) {
  if (!value.shard_of) return 0;
  const ShardOf& shard = *value.shard_of;
  return static_cast<size_t>(shard_begin(shard.shape, shard.split, shard.shard));
}

Parameters::Parameters(std::vector<ParameterEntry> entries) : entries_(std::move(entries)) {
  size_t floats = 0;
  for (ParameterEntry& entry : entries_) {
    places_.emplace(entry.name, static_cast<size_t>(&entry - entries_.data()));
    entry.offset = floats;
    floats += (static_cast<size_t>(entry.shape.elements()) + 15) / 16 * 16;
  }
  memory_ = cpu().allocate(floats * sizeof(float));
}

bool Parameters::contains(std::string_view name) const {
  return places_.find(name) != places_.end();
}

const ParameterEntry& Parameters::entry(std::string_view name) const {
  if (const auto place = places_.find(name); place != places_.end()) return entries_[place->second];
  std::vector<std::string> names;
  for (const ParameterEntry& entry : entries_) names.push_back(entry.name);
  fail(ErrorKind::not_found, "no parameter '{}'{}", name, did_you_mean(name, names));
}

std::span<float> Parameters::values(const ParameterEntry& entry) {
  return block().subspan(entry.offset, static_cast<size_t>(entry.shape.elements()));
}

Memory Parameters::memory(const ParameterEntry& entry) const {
  return memory_.part(entry.offset * sizeof(float),
                      static_cast<size_t>(entry.shape.elements()) * sizeof(float));
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

TensorSource Parameters::source(const ParameterEntry& entry) const {
  return source_of(entry.name, entry.shape, entry.layout, values(entry));
}

std::vector<TensorSource> Parameters::sources() const {
  std::vector<TensorSource> all;
  for (const ParameterEntry& entry : entries_) all.push_back(source(entry));
  return all;
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
