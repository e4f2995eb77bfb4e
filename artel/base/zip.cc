#include "artel/base/zip.h"

#include <algorithm>

#include "artel/base/checksum.h"
#include "artel/base/compress.h"
#include "artel/base/file.h"

namespace artel {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kLocalHeaderSize = 30, kEndSize = 22, kEnd64LocatorSize = 20;
constexpr uint16_t kStored = 0, kDeflated = 8, kEncryptedFlag = 1, kZip64Extra = 1;
constexpr uint32_t kIn64 = 0xffffffff;  // the value is in the zip64 field
constexpr size_t kAlignment = 64;
// Limit on the compression ratio: zeros shrink a thousandfold, but a small archive must not fill
// the memory.
constexpr uint64_t kAlwaysInflated = uint64_t{1} << 30, kMostTimesInflated = 64;

// Offset of the end record. A comment of up to 64 KiB may follow it.
size_t find_end(const Bytes& bytes) {
  const size_t size = bytes.data.size();
  for (size_t back = kEndSize; back <= std::min<size_t>(size, kEndSize + 0xffff); ++back) {
    ByteReader reader(bytes);
    reader.seek(size - back);
    if (reader.little<uint32_t>() == kEnd) return size - back;
  }
  fail(ErrorKind::corrupt, "[{}] no end record of a zip archive; it may be truncated", bytes.name);
}

// Appends little-endian fields to a buffer.
class FieldWriter {
 public:
  template <typename T>
  FieldWriter& add(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
    return *this;
  }
  std::string bytes;
};

constexpr uint16_t kVersion = 20;
constexpr uint32_t kDate = 0x00210000;  // 1980-01-01, so that equal content gives equal files

// The fields that the local and the central header have in common.
void add_common(FieldWriter& header, const ZipArchive::Entry& entry, size_t extra) {
  header.add(kVersion).add<uint16_t>(0).add(kStored).add(kDate).add(entry.checksum);
  header.add(static_cast<uint32_t>(entry.size)).add(static_cast<uint32_t>(entry.size));
  header.add(static_cast<uint16_t>(entry.name.size())).add(static_cast<uint16_t>(extra));
}

}  // namespace

bool is_zip(const Bytes& bytes) {
  return bytes.data.size() >= 4 && ByteReader(bytes).little<uint32_t>() == kLocalHeader;
}

ZipArchive::ZipArchive(Bytes bytes) : bytes_(std::move(bytes)) { parse_directory(); }

void ZipArchive::parse_directory() {
  const size_t end = find_end(bytes_);
  ByteReader reader(bytes_);
  reader.seek(end + 10);
  uint64_t count = reader.little<uint16_t>();
  uint64_t size = reader.little<uint32_t>();
  uint64_t offset = reader.little<uint32_t>();
  if (end >= kEnd64LocatorSize) {
    reader.seek(end - kEnd64LocatorSize);
    if (reader.little<uint32_t>() == kEnd64Locator) {
      reader.take(4);
      reader.seek(reader.little<uint64_t>());
      reader.require(reader.little<uint32_t>() == kEnd64, "not the end record of a zip64 archive");
      reader.take(28);
      count = reader.little<uint64_t>();
      size = reader.little<uint64_t>();
      offset = reader.little<uint64_t>();
    }
  }
  const Bytes directory = bytes_.part(offset, size);
  ByteReader entries(directory);
  for (uint64_t i = 0; i < count; ++i) parse_entry(entries);
  check_entries(offset);
}

void ZipArchive::check_entries(uint64_t directory) {
  std::map<uint64_t, const Entry*> by_place;
  double inflated = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    require(places_.emplace(entry.name, i).second, ErrorKind::corrupt, "[{}] '{}' occurs twice",
            bytes_.name, entry.name);
    const bool first = by_place.emplace(entry.header_offset, &entry).second;
    require(first, ErrorKind::corrupt, "[{}] '{}' overlaps another entry", bytes_.name, entry.name);
    if (entry.method == kDeflated) inflated += static_cast<double>(entry.size);
  }
  const uint64_t most = std::max(kAlwaysInflated, kMostTimesInflated * bytes_.data.size());
  require(inflated <= static_cast<double>(most), ErrorKind::corrupt,
          "[{}] {} bytes that inflate to {:.0f}; at most {} are read", bytes_.name,
          bytes_.data.size(), inflated, most);
  uint64_t end = directory;
  for (auto at = by_place.rbegin(); at != by_place.rend(); ++at) {
    const Entry& entry = *at->second;
    const Bytes content = stored(entry);
    const auto last =
        static_cast<uint64_t>(content.data.data() - bytes_.data.data()) + entry.compressed_size;
    require(last <= end, ErrorKind::corrupt, "[{}] '{}' overlaps another entry", bytes_.name,
            entry.name);
    end = entry.header_offset;
  }
}

void ZipArchive::parse_entry(ByteReader& reader) {
  reader.require(reader.little<uint32_t>() == kCentralHeader, "not an entry of the zip directory");
  reader.take(4);
  const auto flags = reader.little<uint16_t>();
  Entry entry;
  entry.method = reader.little<uint16_t>();
  reader.take(4);
  entry.checksum = reader.little<uint32_t>();
  entry.compressed_size = reader.little<uint32_t>();
  entry.size = reader.little<uint32_t>();
  const auto name_size = reader.little<uint16_t>();
  const auto extra_size = reader.little<uint16_t>();
  const auto comment_size = reader.little<uint16_t>();
  reader.take(8);
  entry.header_offset = reader.little<uint32_t>();
  entry.name = reader.take_text(name_size);
  ByteReader extra(reader.take(extra_size), reader.name());
  reader.take(comment_size);
  while (extra.left() >= 4) {
    const auto id = extra.little<uint16_t>();
    ByteReader field(extra.take(extra.little<uint16_t>()), reader.name());
    if (id != kZip64Extra) continue;
    for (uint64_t* value : {&entry.size, &entry.compressed_size, &entry.header_offset})
      if (*value == kIn64) *value = field.little<uint64_t>();
  }
  reader.require((flags & kEncryptedFlag) == 0, "'{}' is encrypted", entry.name);
  reader.require(entry.method == kStored || entry.method == kDeflated,
                 "'{}' is compressed by method {}, expected stored or deflated", entry.name,
                 entry.method);
  reader.require(entry.method == kDeflated || entry.size == entry.compressed_size,
                 "'{}' is stored, but its sizes {} and {} differ", entry.name, entry.size,
                 entry.compressed_size);
  entries_.push_back(std::move(entry));
}

const ZipArchive::Entry* ZipArchive::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

// The bytes of the entry as stored in the file.
Bytes ZipArchive::stored(const Entry& entry) const {
  ByteReader reader(bytes_);
  reader.seek(entry.header_offset);
  reader.require(reader.little<uint32_t>() == kLocalHeader, "not the header of '{}'", entry.name);
  reader.take(22);
  const auto name_size = reader.little<uint16_t>();
  const auto extra_size = reader.little<uint16_t>();
  reader.take(uint64_t{name_size} + extra_size);
  Bytes content = bytes_.part(reader.offset(), entry.compressed_size);
  content.name = bytes_.name + ":" + entry.name;
  return content;
}

Bytes ZipArchive::read(const Entry& entry) const {
  Bytes content = stored(entry);
  if (entry.method == kDeflated) return inflate_raw(content, entry.size, entry.checksum);
  check_crc32(crc32(content.data), entry.checksum, content.name);
  return content;
}

Bytes ZipArchive::read_start(const Entry& entry, uint64_t size) const {
  const Bytes content = stored(entry);
  return entry.method == kDeflated ? inflate_start(content, size)
                                   : content.part(0, std::min(size, entry.size));
}

void write_zip(const std::filesystem::path& path, const std::vector<ZipPart>& parts) {
  std::vector<std::string> headers;  // `file` holds views of them
  headers.reserve(parts.size());
  std::vector<std::span<const std::byte>> file;
  FieldWriter directory;
  uint64_t offset = 0;
  for (const ZipPart& part : parts) {
    ZipArchive::Entry entry{.name = part.name, .header_offset = offset};
    for (const auto content : part.content) {
      entry.checksum = crc32(content, entry.checksum);
      entry.size += content.size();
    }
    const size_t unpadded = offset + kLocalHeaderSize + entry.name.size();
    const size_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
    require(unpadded + padding + entry.size < kIn64, ErrorKind::unsupported,
            "[{}] an archive of 4 GiB or more; try safetensors", path.string());

    FieldWriter local;
    local.add(kLocalHeader);
    add_common(local, entry, padding);
    headers.push_back(local.bytes + entry.name + std::string(padding, '\0'));
    file.push_back(std::as_bytes(std::span(headers.back())));
    file.insert(file.end(), part.content.begin(), part.content.end());

    directory.add(kCentralHeader).add(kVersion);
    add_common(directory, entry, 0);
    directory.add<uint16_t>(0).add<uint16_t>(0).add<uint16_t>(0).add<uint32_t>(0);
    directory.add(static_cast<uint32_t>(entry.header_offset));
    directory.bytes += entry.name;
    offset = unpadded + padding + entry.size;
  }
  const auto count = static_cast<uint16_t>(parts.size());
  const size_t directory_size = directory.bytes.size();
  directory.add(kEnd).add<uint32_t>(0).add(count).add(count);
  directory.add(static_cast<uint32_t>(directory_size)).add(static_cast<uint32_t>(offset));
  directory.add<uint16_t>(0);
  file.push_back(std::as_bytes(std::span(directory.bytes)));
  write_file_atomically(path, file);
}

}  // namespace artel
