// GGUF files for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "artel/tensor/dtype.h"

namespace artel {

template <typename T>
std::string raw_bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

class GgufWriter {
 public:
  void add(const std::string& key, uint32_t value) { add_value(key, 4, raw_bytes(value)); }
  void add(const std::string& key, float value) { add_value(key, 6, raw_bytes(value)); }
  void add(const std::string& key, bool value) { add_value(key, 7, raw_bytes<uint8_t>(value)); }
  void add(const std::string& key, const std::string& value) { add_value(key, 8, text(value)); }
  void add(const std::string& key, const char* value) { add(key, std::string(value)); }
  void add(const std::string& key, const std::vector<std::string>& list) {
    std::string entries;
    for (const std::string& each : list) entries += text(each);
    add_list(key, 8, list.size(), entries);
  }
  void add(const std::string& key, const std::vector<int32_t>& list) {
    std::string entries;
    for (const int32_t each : list) entries += raw_bytes(each);
    add_list(key, 5, list.size(), entries);
  }

  // `extents` in the order of the file: the last axis first. `type` is the format's number.
  void add_tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                  const std::string& bytes) {
    tensors_ += text(name) + raw_bytes(static_cast<uint32_t>(extents.size()));
    for (const uint64_t extent : extents) tensors_ += raw_bytes(extent);
    tensors_ += raw_bytes(type) + raw_bytes(static_cast<uint64_t>(data_.size()));
    data_ += padded(bytes);
    ++tensor_count_;
  }
  void add_tensor(const std::string& name, const std::vector<uint64_t>& extents,
                  const std::vector<float>& values) {
    add_tensor(name, extents, 0, {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
  }

  std::string file(uint32_t version = 3) const {
    return padded("GGUF" + raw_bytes(version) + raw_bytes(tensor_count_) + raw_bytes(value_count_) +
                  values_ + tensors_) +
           data_;
  }

 private:
  static std::string text(const std::string& value) {
    return raw_bytes(static_cast<uint64_t>(value.size())) + value;
  }
  static std::string padded(std::string bytes) {
    bytes.resize((bytes.size() + 31) / 32 * 32);
    return bytes;
  }
  void add_value(const std::string& key, uint32_t kind, const std::string& bytes) {
    values_ += text(key) + raw_bytes(kind) + bytes;
    ++value_count_;
  }
  void add_list(const std::string& key, uint32_t kind, size_t count, const std::string& entries) {
    add_value(key, 9, raw_bytes(kind) + raw_bytes(static_cast<uint64_t>(count)) + entries);
  }

  std::string values_, tensors_, data_;
  uint64_t value_count_ = 0, tensor_count_ = 0;
};

// One block of 32 numbers: a scale, perhaps a minimum, and codes.
inline std::string gguf_block(std::vector<float> halves, const std::vector<uint8_t>& codes) {
  std::string block;
  for (const float half : halves) block += raw_bytes(float_to_half(half));
  return block.append(reinterpret_cast<const char*>(codes.data()), codes.size());
}

}  // namespace artel
