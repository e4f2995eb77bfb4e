// A connection as a stream of bytes, in clear or encrypted. Only functions with a deadline block.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "artel/base/time.h"
#include "artel/comm/connection/encryption.h"
#include "artel/comm/connection/file_handle.h"

namespace artel::comm {

class Stream {
 public:
  // The socket must not block.
  explicit Stream(FileHandle socket = FileHandle()) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }

  // Encrypts both directions from here on. No encrypted byte may have been received yet.
  void encrypt(const Encryption& encryption, bool listens);

  // The poll events to wait for before the next call. Set `unsent` if data remains to be sent.
  short events(bool unsent) const;

  // True if bytes of the other side wait to be received, still encrypted if it encrypts.
  bool has_bytes() const;

  // Returns the number of bytes sent without blocking. Throws Error(communication) if broken.
  size_t send(std::span<const std::byte> data);
  // Returns the number of bytes received, 0 if none now. Sets `ended` if the other side has closed.
  // Throws if data is not encrypted as it should be.
  size_t receive(std::span<std::byte> data, bool& ended);

  // Appends received data, up to about `most` bytes. False when the other side has closed.
  static constexpr size_t kMostReceived = 1 << 20;
  bool receive(std::string& out, size_t most = kMostReceived);
  // The same, after waiting up to `seconds` for data.
  bool receive_within(double seconds, std::string& out);
  // Sends all bytes or throws at the deadline.
  void send_all(std::string_view bytes, Deadline deadline);

 private:
  FileHandle socket_;
  std::unique_ptr<EncryptedSocket> encrypted_;  // after socket_: it ends first
};

}  // namespace artel::comm
