// Untrusted bytes, the input of every reader of a file format.
//
// A reader never trusts a length before comparing it with the number of bytes left, and its errors
// read `[file] offset N: what is wrong`.
//
//   const artel::Bytes bytes = artel::make_bytes(std::string("\x02\x00ab", 4), "example");
//   artel::ByteReader reader(bytes);
//   const auto size = reader.little<uint16_t>();         // 2
//   const std::string_view text = reader.take_text(size);  // "ab"
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "artel/base/error.h"

namespace artel {

static_assert(std::endian::native == std::endian::little,
              "files and messages are read and written in the order of the machine's bytes, which "
              "must be that of x86-64 and aarch64");

// A view of bytes with a name for messages. `keeper` owns the memory; it is null if the caller owns
// it. Cheap to copy.
struct Bytes {
  std::span<const std::byte> data;
  std::string name;
  std::shared_ptr<const void> keeper;

  // A view of a part, sharing ownership. Throws an Error of kind corrupt if it is out of range.
  Bytes part(uint64_t offset, uint64_t size) const;
  std::string_view text() const {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }
};

// Maps a file read-only.
Bytes map_file(const std::filesystem::path& path);
// A copy of the view that releases the pages of its bytes from memory when the last copy is
// destroyed. The rest of the file may stay mapped.
Bytes with_own_pages(const Bytes& mapped);

// Owned bytes under a name.
Bytes make_bytes(std::string content, std::string name);

// A bounds-checked cursor over borrowed bytes. Reading beyond the end throws.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}
  explicit ByteReader(const Bytes& bytes) : ByteReader(bytes.data, bytes.name) {}

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }
  const std::string& name() const { return name_; }

  // Moves to an absolute offset. The end itself is allowed.
  void seek(uint64_t offset);
  std::span<const std::byte> take(uint64_t size);
  std::string_view take_text(uint64_t size);
  // The text up to the next line feed, which is consumed. Throws without a line feed.
  std::string_view take_line();

  // The next integer, little-endian or big-endian.
  template <typename T>
  T little();
  template <typename T>
  T big();

  // Throws an Error of kind corrupt that names the file and the current offset.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    artel::fail(ErrorKind::corrupt, "[{}] offset {}: {}", name_, offset_,
                fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void require(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) [[unlikely]]
      fail(format, std::forward<Args>(args)...);
  }

 private:
  uint64_t take_unsigned(size_t size, bool big_endian);

  std::span<const std::byte> bytes_;
  std::string name_;
  size_t offset_ = 0;
};

// Limits the total memory of the parts of a file before it is allocated. Refuses files that refer
// to the same bytes repeatedly to exhaust memory.
class ByteBudget {
 public:
  explicit ByteBudget(std::string name) : name_(std::move(name)) {}

  // Raises the limit by twice the number of bytes read.
  void earn(uint64_t bytes) { most_ += 2 * bytes; }
  void spend(uint64_t bytes) {
    spent_ += bytes;
    artel::require(spent_ <= most_, ErrorKind::corrupt,
                   "[{}] names the same bytes again and again: its tensors take more than {} bytes",
                   name_, most_);
  }

 private:
  std::string name_;
  uint64_t most_ = 1 << 20, spent_ = 0;
};

template <typename T>
T ByteReader::little() {
  static_assert(std::is_integral_v<T>);
  return static_cast<T>(take_unsigned(sizeof(T), false));
}

template <typename T>
T ByteReader::big() {
  static_assert(std::is_integral_v<T>);
  return static_cast<T>(take_unsigned(sizeof(T), true));
}

}  // namespace artel
