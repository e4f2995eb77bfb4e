// SHA-256 digests, which identify files.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace artel {

// The digest in lower-case hexadecimal.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace artel
