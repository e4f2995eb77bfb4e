// Zip archives, as used by NPZ and PyTorch files: stored or deflated entries, zip64, no encryption,
// one disk.
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
    uint64_t size = 0;             // uncompressed
    uint64_t compressed_size = 0;  // in the file
    uint64_t header_offset = 0;
    uint32_t checksum = 0;  // CRC-32 of the content
    uint16_t method = 0;
  };

  // Reads and checks the central directory; inflates nothing. Throws an Error of kind corrupt with
  // file and offset, also for overlapping entries, duplicate names, and content far larger than the
  // file.
  explicit ZipArchive(Bytes bytes);

  const std::string& name() const { return bytes_.name; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Returns null for an unknown name.
  const Entry* find(std::string_view name) const;

  // The content: a view of the file if stored, new memory if deflated. Throws if the checksum is
  // wrong.
  Bytes read(const Entry& entry) const;
  // The first `size` bytes of the content, or all if it has fewer, without a checksum test.
  Bytes read_start(const Entry& entry, uint64_t size) const;

 private:
  void parse_directory();
  void parse_entry(ByteReader& reader);
  void check_entries(uint64_t directory);
  Bytes stored(const Entry& entry) const;

  Bytes bytes_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // name to index in entries_
};

bool is_zip(const Bytes& bytes);

// An entry to write.
struct ZipPart {
  std::string name;
  std::vector<std::span<const std::byte>> content;
};

// Writes an archive of stored entries atomically. The archive must be smaller than 4 GiB. The
// content of each entry is aligned to 64 bytes, so it can be mapped.
void write_zip(const std::filesystem::path& path, const std::vector<ZipPart>& parts);

}  // namespace artel
