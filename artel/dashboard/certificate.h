// The dashboard's TLS certificate.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <openssl/types.h>

namespace artel::dashboard {

// Creates a key and a self-signed certificate for these names and addresses, unless the file
// exists. Only its owner can read it. Returns true if it was created.
bool make_certificate(const std::filesystem::path& file, const std::vector<std::string>& names);

// A TLS context for a server, from a PEM file with a certificate and its key. Throws if the file
// has none.
std::shared_ptr<SSL_CTX> server_encryption(const std::filesystem::path& file);

// SHA-256 fingerprint of the file's certificate, in the form of browsers: "3A:F2:...".
std::string fingerprint_of(const std::filesystem::path& file);

}  // namespace artel::dashboard
