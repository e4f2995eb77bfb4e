// TLS 1.3 between processes that know the secret of a run: the key that both ends begin with is
// derived from it (an external pre-shared key with an ephemeral exchange), so there are no
// certificates, and what was recorded cannot be read by somebody who learns the secret later.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "artel/comm/handshake.h"

namespace artel::comm {

// What all encrypted connections of a run have in common. Cheap to copy; thread safe.
class Encryption {
 public:
  explicit Encryption(const RunKey& key);

 private:
  friend class EncryptedSocket;
  struct Contexts;
  std::shared_ptr<Contexts> contexts_;
};

// One end of an encrypted connection, over a socket that does not block and that outlives it. One
// thread may send while another receives. The kernel encrypts where it can.
class EncryptedSocket {
 public:
  EncryptedSocket(const Encryption& encryption, int socket, bool listens);
  ~EncryptedSocket();
  EncryptedSocket(const EncryptedSocket&) = delete;
  EncryptedSocket& operator=(const EncryptedSocket&) = delete;

  // How many bytes were sent or received; 0: none now. Throw Error(communication) if the connection
  // is broken, or if the other side does not know the secret.
  size_t send(std::span<const std::byte> data);
  // Nothing more will come: `ended`.
  size_t receive(std::span<std::byte> data, bool& ended);
  // Whether sending has to wait until the socket can be written to; otherwise it waits for the
  // other side to say something.
  bool waits_to_write() const;
  // Whether the two ends have agreed on their keys, so that data can be sent.
  bool is_ready() const;

 private:
  size_t result_of(int returned, size_t bytes, bool& ended);

  Encryption encryption_;  // its key must be there when the other side comes
  mutable std::mutex mutex_;
  std::unique_ptr<SSL, decltype(&SSL_free)> connection_;
  bool waits_to_write_ = false;
};

}  // namespace artel::comm
