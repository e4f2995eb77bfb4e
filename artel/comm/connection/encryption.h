// TLS 1.3 between processes that know the secret of a run. The initial key of both ends is derived
// from it (an external pre-shared key with an ephemeral exchange), so there are no certificates,
// and recorded traffic stays unreadable to anyone who learns the secret later.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "artel/base/mutex.h"
#include "artel/comm/connection/handshake.h"

namespace artel::comm {

// State shared by all encrypted connections of a run. Cheap to copy; thread safe.
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

  // Return the number of bytes sent or received, 0 if none now. Throw Error(communication) if the
  // connection is broken, or if the other side does not know the secret.
  size_t send(std::span<const std::byte> data);
  // Sets `ended` if the other side has closed the connection.
  size_t receive(std::span<std::byte> data, bool& ended);
  // True if sending must wait until the socket is writable; otherwise it waits for data from the
  // other side.
  bool waits_to_write() const;
  // True if both ends have agreed on their keys, so that data can be sent.
  bool is_ready() const;

 private:
  size_t result_of(int returned, size_t bytes, bool& ended) ARTEL_REQUIRES(mutex_);

  Encryption encryption_;  // must be set when the other side connects
  mutable Mutex mutex_;
  std::unique_ptr<SSL, decltype(&SSL_free)> connection_;
  bool waits_to_write_ ARTEL_GUARDED_BY(mutex_) = false;
};

}  // namespace artel::comm
