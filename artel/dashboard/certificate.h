// The certificate with which a dashboard encrypts its connections.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <openssl/types.h>

namespace artel::dashboard {

// Makes a key and a certificate signed by itself for these names and addresses, unless the file
// is there already. Only its owner can read it. Returns whether it was made.
bool make_certificate(const std::filesystem::path& file, const std::vector<std::string>& names);

// TLS for a server, with a PEM file of a certificate and its key. Throws if it has none.
std::shared_ptr<SSL_CTX> server_encryption(const std::filesystem::path& file);

// SHA-256 of the file's certificate, as browsers show it: "3A:F2:...".
std::string fingerprint_of(const std::filesystem::path& file);

}  // namespace artel::dashboard
