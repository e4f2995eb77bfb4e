// Digests by which files are recognised: MD5 and SHA-1 because publishers of data name them,
// SHA-256 for our own. They guard against damage, not against an attacker who can forge MD5.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace artel {

// Lower-case hexadecimal.
std::string md5(std::span<const std::byte> bytes);
std::string sha1(std::span<const std::byte> bytes);
std::string sha256(std::span<const std::byte> bytes);

// The digest whose kind follows from the length of `expected`: 32, 40 or 64 digits.
std::string digest_like(const std::string& expected, std::span<const std::byte> bytes);

}  // namespace artel
