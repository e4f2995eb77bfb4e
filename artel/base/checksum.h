// CRC-32 as used by zip, gzip, and PNG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace artel {

// CRC-32 of `bytes`, continuing from the checksum `before` of the preceding bytes.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);
// Throws an Error of kind corrupt if both differ.
void check_crc32(uint32_t found, uint32_t expected, const std::string& name);

// Size and checksum of a file, to detect changes.
struct FileSummary {
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
};
// Reads the file piece by piece, with constant memory.
FileSummary summarise_file(const std::filesystem::path& path);

}  // namespace artel
