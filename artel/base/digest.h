// SHA-256, by which files are known.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace artel {

// Lower-case hexadecimal.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace artel
