#include "artel/base/bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include "artel/base/file.h"

namespace artel {

Bytes Bytes::part(uint64_t offset, uint64_t size) const {
  artel::require(offset <= data.size() && size <= data.size() - offset, ErrorKind::corrupt,
                 "[{}] offset {}: needs {} bytes, but the file has {}; it may be truncated", name,
                 offset, size, data.size());
  return {data.subspan(offset, size), name, keeper};
}

Bytes map_file(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  return {file->bytes(), path.string(), file};
}

Bytes with_own_pages(const Bytes& mapped) {
  // Whole pages only: the first and the last one may hold other parts, too.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(mapped.data.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + mapped.data.size()) / page * page;
  if (first >= last) return mapped;
  std::shared_ptr<const void> pages(reinterpret_cast<const void*>(first),
                                    [size = last - first, keeper = mapped.keeper](const void* at) {
                                      ::madvise(const_cast<void*>(at), size, MADV_DONTNEED);
                                    });
  return {mapped.data, mapped.name, std::move(pages)};
}

Bytes make_bytes(std::string content, std::string name) {
  auto owner = std::make_shared<const std::string>(std::move(content));
  return {std::as_bytes(std::span(*owner)), std::move(name), owner};
}

void ByteReader::seek(uint64_t offset) {
  require(offset <= bytes_.size(), "points to offset {}, but the file has {} bytes", offset,
          bytes_.size());
  offset_ = offset;
}

std::span<const std::byte> ByteReader::take(uint64_t size) {
  require(size <= left(), "needs {} bytes, but only {} are left; it may be truncated", size,
          left());
  const auto taken = bytes_.subspan(offset_, size);
  offset_ += size;
  return taken;
}

std::string_view ByteReader::take_text(uint64_t size) {
  const auto taken = take(size);
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

std::string_view ByteReader::take_line() {
  const auto rest = bytes_.subspan(offset_);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  const size_t end = text.find('\n');
  require(end != std::string_view::npos, "a line without an end");
  offset_ += end + 1;
  return text.substr(0, end);
}

uint64_t ByteReader::take_unsigned(size_t size, bool big_endian) {
  const auto taken = take(size);
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t from = big_endian ? i : size - 1 - i;
    value = value << 8 | std::to_integer<uint64_t>(taken[from]);
  }
  return value;
}

}  // namespace artel
