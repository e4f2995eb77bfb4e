#include "artel/comm/connection/encryption.h"

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "artel/base/error.h"
#include "artel/comm/connection/broken_pipe.h"
#include "artel/comm/connection/handshake.h"

namespace artel::comm {
namespace {

constexpr const char* kIdentity = "artel";
// Both use SHA-256, like the key. TLS picks the one that the machines have instructions for.
constexpr const char* kCiphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::array<unsigned char, 2> kCipherOfKey = {0x13, 0x01};
constexpr int kMostAtOnce = 1 << 20;

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

std::string last_error() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

void require_success(bool success, const char* what) {
  require(success, ErrorKind::internal, "[comm] encryption: {}: {}", what, last_error());
}

// The key as an external pre-shared key of TLS 1.3. The caller owns it.
SSL_SESSION* session_of(SSL* connection) {
  const auto& key =
      *static_cast<const std::string*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection)));
  std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(SSL_SESSION_new(),
                                                                    &SSL_SESSION_free);
  const SSL_CIPHER* cipher = SSL_CIPHER_find(connection, kCipherOfKey.data());
  if (!session || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                  key.size()) != 1 ||
      SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1)
    return nullptr;
  return session.release();
}

int find_session(SSL* connection, const unsigned char* identity, size_t length,
                 SSL_SESSION** session) {
  const bool known =
      length == std::strlen(kIdentity) && std::memcmp(identity, kIdentity, length) == 0;
  *session = known ? session_of(connection) : nullptr;
  return 1;
}

int use_session(SSL* connection, const EVP_MD*, const unsigned char** identity, size_t* length,
                SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity);
  *length = std::strlen(kIdentity);
  *session = session_of(connection);
  return *session != nullptr ? 1 : 0;
}

Context make_context(const SSL_METHOD* method, std::string& key) {
  Context context(SSL_CTX_new(method), &SSL_CTX_free);
  require_success(context != nullptr, "context");
  require_success(SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                      SSL_CTX_set_ciphersuites(context.get(), kCiphers) == 1 &&
                      SSL_CTX_set_num_tickets(context.get(), 0) == 1,
                  "TLS 1.3");
  SSL_CTX_set_app_data(context.get(), &key);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_ENABLE_KTLS);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

}  // namespace

struct Encryption::Contexts {
  explicit Contexts(std::string the_key)
      : key(std::move(the_key)),
        listening(make_context(TLS_server_method(), key)),
        calling(make_context(TLS_client_method(), key)) {
    SSL_CTX_set_psk_find_session_callback(listening.get(), &find_session);
    SSL_CTX_set_psk_use_session_callback(calling.get(), &use_session);
    // The listener has no certificate to show, and the caller trusts none: only the key will do.
    SSL_CTX_set_verify(calling.get(), SSL_VERIFY_PEER, nullptr);
  }

  std::string key;
  Context listening, calling;
};

Encryption::Encryption(const RunKey& key)
    : contexts_(std::make_shared<Contexts>(key.digest({"encryption"}))) {
  survive_broken_pipes();
}

EncryptedSocket::EncryptedSocket(const Encryption& encryption, int socket, bool listens)
    : encryption_(encryption),
      connection_(SSL_new(listens ? encryption.contexts_->listening.get()
                                  : encryption.contexts_->calling.get()),
                  &SSL_free) {
  require_success(connection_ && SSL_set_fd(connection_.get(), socket) == 1, "connection");
  if (listens)
    SSL_set_accept_state(connection_.get());
  else
    SSL_set_connect_state(connection_.get());
}

EncryptedSocket::~EncryptedSocket() = default;

size_t EncryptedSocket::result_of(int returned, size_t bytes, bool& ended) {
  if (returned > 0) return bytes;
  const bool was_ready = SSL_is_init_finished(connection_.get()) != 0;
  switch (SSL_get_error(connection_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      return 0;
    case SSL_ERROR_WANT_WRITE:
      waits_to_write_ = true;
      return 0;
    case SSL_ERROR_ZERO_RETURN:
      ended = true;
      return 0;
    default:
      const unsigned long error = ERR_peek_error();
      // A process that dies sends no close notification.
      if (error == 0 || ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        ERR_clear_error();
        ended = true;
        return 0;
      }
      if (!was_ready)
        throw WrongToken(fmt::format(
            "[comm] wrong token: no encrypted connection could be made ({})", last_error()));
      fail(ErrorKind::communication, "[comm] an encrypted connection broke ({})", last_error());
  }
}

size_t EncryptedSocket::send(std::span<const std::byte> data) {
  const MutexLock lock(mutex_);
  waits_to_write_ = false;
  ERR_clear_error();
  size_t sent = 0;
  bool ended = false;
  const int returned = SSL_write_ex(connection_.get(), data.data(),
                                    std::min<size_t>(data.size(), kMostAtOnce), &sent);
  sent = result_of(returned, sent, ended);
  require(!ended, ErrorKind::communication, "[comm] the other side has closed the connection");
  return sent;
}

size_t EncryptedSocket::receive(std::span<std::byte> data, bool& ended) {
  const MutexLock lock(mutex_);
  waits_to_write_ = false;
  ERR_clear_error();
  size_t got = 0;
  const int returned =
      SSL_read_ex(connection_.get(), data.data(), std::min<size_t>(data.size(), kMostAtOnce), &got);
  return result_of(returned, got, ended);
}

bool EncryptedSocket::waits_to_write() const {
  const MutexLock lock(mutex_);
  return waits_to_write_;
}

bool EncryptedSocket::is_ready() const {
  const MutexLock lock(mutex_);
  return SSL_is_init_finished(connection_.get()) != 0;
}

}  // namespace artel::comm
