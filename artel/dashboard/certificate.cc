#include "artel/dashboard/certificate.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/secret.h"

namespace artel::dashboard {
namespace {

namespace fs = std::filesystem;

constexpr long kValidSeconds = 10L * 365 * 24 * 3600;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using X509Handle = std::unique_ptr<X509, decltype(&X509_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return ::inet_pton(AF_INET, name.c_str(), parsed.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), parsed.data()) == 1;
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()), &X509_EXTENSION_free);
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1, ErrorKind::internal,
          "[dashboard] certificate: cannot add '{}'", value);
}

X509Handle sign_itself(EVP_PKEY* key, const std::vector<std::string>& names) {
  X509Handle certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);  // 2 stands for version 3
  uint64_t serial = 0;
  const std::string random = random_bytes(sizeof serial);
  random.copy(reinterpret_cast<char*>(&serial), sizeof serial);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kValidSeconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("artel dashboard"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  std::string all;
  for (const std::string& name : names)
    if (name.find('%') == name.npos)  // a zone index is valid only on this machine
      all += (all.empty() ? "" : ",") + std::string(is_address(name) ? "IP:" : "DNS:") + name;
  add_extension(certificate.get(), NID_subject_alt_name, all);
  add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  require(X509_sign(certificate.get(), key, EVP_sha256()) > 0, ErrorKind::internal,
          "[dashboard] certificate: cannot be signed");
  return certificate;
}

std::string text_of(BIO* memory) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

bool make_certificate(const fs::path& file, const std::vector<std::string>& names) {
  if (fs::exists(file)) return false;
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  require(static_cast<bool>(key), ErrorKind::internal, "[dashboard] certificate: no key");
  const X509Handle certificate = sign_itself(key.get(), names);
  const Memory memory(BIO_new(BIO_s_mem()), &BIO_free);
  require(PEM_write_bio_X509(memory.get(), certificate.get()) == 1 &&
              PEM_write_bio_PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                       nullptr) == 1,
          ErrorKind::internal, "[dashboard] certificate: cannot be written");
  fs::create_directories(file.parent_path());
  write_file_atomically(file, text_of(memory.get()), 0600);
  return true;
}

std::shared_ptr<SSL_CTX> server_encryption(const fs::path& file) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  require(SSL_CTX_use_certificate_chain_file(context.get(), file.c_str()) == 1 &&
              SSL_CTX_use_PrivateKey_file(context.get(), file.c_str(), SSL_FILETYPE_PEM) == 1 &&
              SSL_CTX_check_private_key(context.get()) == 1,
          ErrorKind::invalid_argument,
          "[{}] expected a PEM file with a certificate and its private key", file.string());
  return context;
}

std::string fingerprint_of(const fs::path& file) {
  const std::string text = read_file(file);
  const Memory memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  const X509Handle certificate(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr),
                               &X509_free);
  require(static_cast<bool>(certificate), ErrorKind::invalid_argument,
          "[{}] expected a PEM file with a certificate", file.string());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size);
  std::string shown;
  for (unsigned i = 0; i < size; ++i) shown += fmt::format("{}{:02X}", i > 0 ? ":" : "", digest[i]);
  return shown;
}

}  // namespace artel::dashboard
