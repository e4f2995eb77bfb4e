#include "artel/base/secret.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "artel/base/error.h"

namespace artel {

std::string keyed_digest(std::string_view key, std::string_view message) {
  std::string digest(kDigestBytes, '\0');
  unsigned length = 0;
  // A null pointer would mean "the key of the last call".
  const void* const bytes = key.empty() ? static_cast<const void*>("") : key.data();
  const unsigned char* const made =
      HMAC(EVP_sha256(), bytes, static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &length);
  require(made != nullptr && length == kDigestBytes, ErrorKind::internal,
          "[hmac] the cryptographic library failed");
  return digest;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  require(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1,
          ErrorKind::internal, "[random] the cryptographic library failed");
  return bytes;
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace artel
