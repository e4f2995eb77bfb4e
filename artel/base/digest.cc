#include "artel/base/digest.h"

#include <openssl/evp.h>

#include <array>

#include "artel/base/error.h"

namespace artel {

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, 32> digest{};
  require(
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1,
      ErrorKind::internal, "[sha256] the cryptographic library failed");
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace artel
