// CRC-32, as in zip, gzip and PNG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace artel {

// Of bytes that follow others with the checksum `before`.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);
// Throws an Error of kind corrupt if the bytes have another CRC-32.
void check_crc32(uint32_t found, uint32_t expected, const std::string& name);

// What tells whether a file has changed.
struct FileSummary {
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
};
// Reads the file piece by piece, so that it takes no memory.
FileSummary summarise_file(const std::filesystem::path& path);

}  // namespace artel
