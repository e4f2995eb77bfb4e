#include "artel/exec/parameters.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/mutex.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"

namespace artel {

size_t shard_offset(const ValueData& value) {
  if (!value.shard_of) return 0;
  const ShardOf& shard = *value.shard_of;
  return static_cast<size_t>(shard_begin(shard.shape, shard.split, shard.shard));
}

struct Parameters::Copies {
  struct Copy {
    Memory memory;
    int64_t changes = -1;  // that it has seen
  };
  std::atomic<int64_t> changes = 0;
  Mutex mutex;
  std::map<Device*, Copy> on ARTEL_GUARDED_BY(mutex);
};

Parameters::Parameters() : copies_(std::make_shared<Copies>()) {}

Parameters::Parameters(std::vector<ParameterEntry> entries)
    : entries_(std::move(entries)), copies_(std::make_shared<Copies>()) {
  constexpr size_t kLine = 64;
  size_t bytes = 0;
  for (ParameterEntry& entry : entries_) {
    places_.emplace(entry.name, static_cast<size_t>(&entry - entries_.data()));
    entry.offset = bytes;
    bytes += (entry.bytes() + kLine - 1) / kLine * kLine;
  }
  memory_ = cpu().allocate(bytes);
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

void Parameters::touch() { ++copies_->changes; }

std::span<float> Parameters::block() {
  touch();
  return memory_.floats();
}

Memory Parameters::memory_on(Device& device, const ParameterEntry& entry) const {
  const MutexLock lock(copies_->mutex);
  Memory& memory = copies_->on[&device].memory;
  if (!memory) memory = device.allocate(memory_.bytes());
  return memory.part(entry.offset, entry.bytes());
}

void Parameters::refresh(Device& device) const {
  const MutexLock lock(copies_->mutex);
  const auto found = copies_->on.find(&device);
  const int64_t changes = copies_->changes;
  if (found == copies_->on.end() || found->second.changes == changes) return;
  device.write(found->second.memory.address(), memory_.address(), memory_.bytes());
  found->second.changes = changes;
}

std::span<float> Parameters::values(const ParameterEntry& entry) {
  touch();
  require(entry.type == DType::f32, ErrorKind::internal, "parameter '{}' is {}, expected f32",
          entry.name, to_string(entry.type));
  return memory(entry).floats();
}

Memory Parameters::memory(const ParameterEntry& entry) const {
  return memory_.part(entry.offset, entry.bytes());
}

std::span<const float> Parameters::values(const ParameterEntry& entry) const {
  require(entry.type == DType::f32, ErrorKind::internal, "parameter '{}' is {}, expected f32",
          entry.name, to_string(entry.type));
  return memory(entry).floats();
}

Tensor Parameters::get(std::string_view name) const {
  const ParameterEntry& e = entry(name);
  Tensor tensor(e.shape, e.type);
  if (e.type != DType::f32) {
    std::memcpy(tensor.raw(), memory(e).address(), e.bytes());
    return tensor;
  }
  ThreadPool here(1);
  convert_layout(here, e.shape, DType::f32, reinterpret_cast<const std::byte*>(values(e).data()),
                 e.layout, tensor.raw(), Layout::row_major());
  return tensor;
}

TensorSource Parameters::source(const ParameterEntry& entry) const {
  if (entry.type != DType::f32) return sources_of({{entry.name, get(entry.name)}}).front();
  return source_of(entry.name, entry.shape, entry.layout, values(entry));
}

std::vector<TensorSource> Parameters::sources() const {
  std::vector<TensorSource> all;
  for (const ParameterEntry& entry : entries_) all.push_back(source(entry));
  return all;
}

void Parameters::set(std::string_view name, const Tensor& value) {
  touch();
  const ParameterEntry& e = entry(name);
  require(value.shape() == e.shape, ErrorKind::shape, "parameter '{}': got shape {}, expected {}",
          name, to_string(value.shape()), to_string(e.shape));
  if (e.type != DType::f32) {
    require(value.dtype() == e.type, ErrorKind::shape, "parameter '{}': got {}, expected {}", name,
            to_string(value.dtype()), to_string(e.type));
    std::memcpy(memory(e).address(), value.raw(), e.bytes());
    return;
  }
  const Tensor plain = value.dtype() == DType::f32 ? value : value.to(DType::f32);
  ThreadPool here(1);
  convert_layout(here, e.shape, DType::f32, plain.raw(), Layout::row_major(),
                 reinterpret_cast<std::byte*>(values(e).data()), e.layout);
}

}  // namespace artel
