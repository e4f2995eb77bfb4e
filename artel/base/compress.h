// Inflating of gzip files and raw deflate streams, with a bound on what comes out.
#pragma once

#include <cstdint>
#include <string>

#include "artel/base/bytes.h"

namespace artel {

// What uncompressed data may take at most, so that a small file cannot fill the memory.
inline constexpr uint64_t kMaxInflated = uint64_t{1} << 32;

bool is_gzip(const Bytes& bytes);

// The content of a gzip file (of all its members). Throws an Error of kind corrupt.
Bytes gunzip(const Bytes& compressed, uint64_t max_bytes = kMaxInflated);

// The content of a raw deflate stream that must inflate to exactly `size` bytes.
Bytes inflate_raw(const Bytes& compressed, uint64_t size);

// Maps a file, and inflates it if its content is gzip.
Bytes map_or_gunzip(const std::filesystem::path& path, uint64_t max_bytes = kMaxInflated);

}  // namespace artel
