// Zip archives, as NPZ and PyTorch files use them: entries stored or deflated, up to 2^64 bytes, no
// encryption, one disk.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "artel/base/bytes.h"

namespace artel {

class ZipArchive {
 public:
  struct Entry {
    std::string name;
    uint64_t size = 0;             // of the content
    uint64_t compressed_size = 0;  // in the file
    uint64_t header_offset = 0;
    uint32_t checksum = 0;  // CRC-32 of the content
    uint16_t method = 0;
  };

  // Reads the central directory. Throws an Error of kind corrupt that names file and offset, also
  // for entries that overlap, names that occur twice and content that would be far larger than the
  // file: nothing is inflated before all of that is known.
  explicit ZipArchive(Bytes bytes);

  const std::string& name() const { return bytes_.name; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Null if there is none.
  const Entry* find(std::string_view name) const;

  // The content: a view of the file if stored, new memory if deflated. Throws if the checksum
  // differs.
  Bytes read(const Entry& entry) const;
  // The first bytes of it, not checked: `size` of them, or all if it has fewer.
  Bytes read_start(const Entry& entry, uint64_t size) const;

 private:
  void parse_directory();
  void parse_entry(ByteReader& reader);
  void check_entries(uint64_t directory);
  Bytes stored(const Entry& entry) const;

  Bytes bytes_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // of entries by name
};

bool is_zip(const Bytes& bytes);

// Entries to be written: name and content.
struct ZipPart {
  std::string name;
  std::vector<std::span<const std::byte>> content;
};

// Writes an archive of stored entries atomically; all of it must stay below 4 GiB. The content of
// each entry starts at a multiple of 64 bytes, so it can be mapped.
void write_zip(const std::filesystem::path& path, const std::vector<ZipPart>& parts);

}  // namespace artel
