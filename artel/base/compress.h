// Inflates gzip files and raw deflate streams, with a limit on the size of the output.
//
// What inflates to far more than most data does is inflated twice, the first time without keeping
// anything, so that a bad file is refused before it has taken memory.
#pragma once

#include <cstdint>
#include <string>

#include "artel/base/bytes.h"

namespace artel {

// The largest size of uncompressed data: a small file must not be able to fill the memory.
inline constexpr uint64_t kMaxInflated = uint64_t{1} << 32;

bool is_gzip(const Bytes& bytes);

// The content of a gzip file (of all its members). Throws an Error of kind corrupt.
Bytes gunzip(const Bytes& compressed, uint64_t max_bytes = kMaxInflated);

// The content of a raw deflate stream that must inflate to exactly `size` bytes with this CRC-32.
Bytes inflate_raw(const Bytes& compressed, uint64_t size, uint32_t checksum);
// Its first bytes: `size` of them, or all if it has fewer.
Bytes inflate_start(const Bytes& compressed, uint64_t size);

// Maps a file, and inflates it if its content is gzip.
Bytes map_or_gunzip(const std::filesystem::path& path, uint64_t max_bytes = kMaxInflated);

}  // namespace artel
