// Primitives for secrets: keyed digests, cryptographic random numbers, and constant-time
// comparison.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace artel {

constexpr size_t kDigestBytes = 32;

// HMAC-SHA-256, kDigestBytes long.
std::string keyed_digest(std::string_view key, std::string_view message);

// Random bytes from the operating system.
std::string random_bytes(size_t count);

// Compares in a time that depends only on the lengths.
bool same_secret(std::string_view a, std::string_view b);

// Lower-case hexadecimal.
std::string to_hex(std::string_view bytes);

}  // namespace artel
