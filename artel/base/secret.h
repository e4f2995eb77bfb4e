// What secrets are kept and shown with: keyed digests, numbers that nobody can guess, and a
// comparison that takes as long for a near miss as for any other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace artel {

constexpr size_t kDigestBytes = 32;

// HMAC-SHA-256: kDigestBytes bytes.
std::string keyed_digest(std::string_view key, std::string_view message);

// From the system's source of randomness.
std::string random_bytes(size_t count);

// Whether both are the same, in a time that depends on their lengths only.
bool same_secret(std::string_view a, std::string_view b);

// Lower-case hexadecimal.
std::string to_hex(std::string_view bytes);

}  // namespace artel
