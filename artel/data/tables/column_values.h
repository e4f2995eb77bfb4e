// The values of a column, which may be larger than memory.
//
//   artel::data::ColumnValues<double> prices(1000);
//   prices.append(std::vector<double>{9.5, 12});
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace artel::data {

// Zeroed memory, allocated as it is written. With a folder, it is backed by an unnamed temporary
// file there, so its pages can be written to disk; the file disappears with the last handle. Throws
// an Error of kind io if the disk is full.
std::shared_ptr<std::byte> column_memory(size_t bytes, const std::filesystem::path& folder = {});

// Grows like a vector. Copies share the values.
template <typename T>
class ColumnValues {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  ColumnValues() = default;
  // `expected` is the expected number of values. With a `folder`, they are backed by a temporary
  // file there.
  explicit ColumnValues(size_t expected, std::filesystem::path folder = {})
      : folder_(std::move(folder)) {
    grow(expected);
  }

  size_t size() const { return size_; }
  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T operator[](int64_t i) const { return data()[i]; }

  void append(std::span<const T> values) {
    if (size_ + values.size() > capacity_) grow(std::max(2 * capacity_, size_ + values.size()));
    std::copy(values.begin(), values.end(), end());
    size_ += values.size();
  }

  bool operator==(const ColumnValues& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }
  bool operator==(const std::vector<T>& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  void grow(size_t capacity) {
    std::shared_ptr<std::byte> larger = column_memory(capacity * sizeof(T), folder_);
    std::copy(begin(), end(), reinterpret_cast<T*>(larger.get()));
    memory_ = std::move(larger);
    capacity_ = capacity;
  }

  std::filesystem::path folder_;
  std::shared_ptr<std::byte> memory_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace artel::data
