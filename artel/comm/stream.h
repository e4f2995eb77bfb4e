// A connection as a stream of bytes, in clear or encrypted. Nothing here blocks, except what has a
// deadline.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "artel/base/time.h"
#include "artel/comm/encryption.h"
#include "artel/comm/file_handle.h"

namespace artel::comm {

class Stream {
 public:
  // The socket must not block.
  explicit Stream(FileHandle socket = FileHandle()) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }

  // What follows is encrypted, in both directions. Nothing that belongs to it has been received.
  void encrypt(const Encryption& encryption, bool listens);

  // What to wait for, with poll, before the next call; `unsent`: there is something to send.
  short events(bool unsent) const;

  // How many bytes the connection takes now. Throws Error(communication) if it is broken.
  size_t send(std::span<const std::byte> data);
  // How many bytes have arrived; 0: none now, or, if `ended`, never again. Throws if what has
  // arrived was not encrypted as it should be.
  size_t receive(std::span<std::byte> data, bool& ended);

  // Appends what has arrived, up to about `most` bytes; false when the other side has closed.
  static constexpr size_t kMostReceived = 1 << 20;
  bool receive(std::string& out, size_t most = kMostReceived);
  // The same, after waiting for it for up to so many seconds.
  bool receive_within(double seconds, std::string& out);
  // Sends all bytes or throws at the deadline.
  void send_all(std::string_view bytes, Deadline deadline);

 private:
  FileHandle socket_;
  std::unique_ptr<EncryptedSocket> encrypted_;  // after socket_: it ends first
};

}  // namespace artel::comm
