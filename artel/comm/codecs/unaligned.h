// Numbers inside messages, which may lie at any address.
#pragma once

#include <cstddef>
#include <cstring>

namespace artel::comm {

template <typename T>
inline T load_at(const std::byte* from, size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
inline void store_at(std::byte* to, size_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

}  // namespace artel::comm
