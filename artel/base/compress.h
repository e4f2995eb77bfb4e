// Inflates gzip files and raw deflate streams, with a limit on the size of the output.
//
// Data with an unusually high compression ratio is inflated twice. The first pass discards its
// output, so a decompression bomb is refused before it takes memory.
#pragma once

#include <cstdint>
#include <string>

#include "artel/base/bytes.h"

namespace artel {

// Default limit on uncompressed data, so that a small file cannot fill the memory.
inline constexpr uint64_t kMaxInflated = uint64_t{1} << 32;

bool is_gzip(const Bytes& bytes);

// The content of all members of a gzip file. Throws an Error of kind corrupt.
Bytes gunzip(const Bytes& compressed, uint64_t max_bytes = kMaxInflated);

// The content of a raw deflate stream that must inflate to exactly `size` bytes with this CRC-32.
Bytes inflate_raw(const Bytes& compressed, uint64_t size, uint32_t checksum);
// The first `size` bytes of a raw deflate stream, or all if it has fewer.
Bytes inflate_start(const Bytes& compressed, uint64_t size);

// Maps a file, and inflates it if its content is gzip.
Bytes map_or_gunzip(const std::filesystem::path& path, uint64_t max_bytes = kMaxInflated);

}  // namespace artel
