// A connection of a browser: bytes in clear or by TLS, with a deadline for everything.
//
// A request has kRequestSeconds and kMostRequest bytes from its first byte to its last one, so that
// a client can neither trickle nor flood; an answer must make progress every kWriteSeconds.
// Another thread may call `hang_up`.
#pragma once

#include <httplib.h>

#include <memory>
#include <string>

#include "artel/base/time.h"

namespace artel::dashboard {

class Connection final : public httplib::Stream {
 public:
  static constexpr double kRequestSeconds = 10, kWriteSeconds = 5, kIdleSeconds = 5;
  static constexpr size_t kMostRequest = 256 << 10;

  // Takes the socket over. Encrypts if there is a context.
  Connection(int socket, SSL_CTX* encryption);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // To begin with: TLS's handshake, if the connection is encrypted; false: it failed.
  bool greet();
  // Waits for the first byte of the next request for so many seconds; false: none came.
  bool await_request(double seconds);
  bool is_open() const { return !broken_; }
  // Any thread: what is being read or written ends.
  void hang_up() noexcept;

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& address, int& port) const override;
  void get_local_ip_and_port(std::string& address, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  // Repeats an operation of the socket or of TLS until it has done something; -1: it cannot.
  template <typename Operation>
  ssize_t attempt(Operation operation, short events, Deadline deadline);
  bool wait(short events, Deadline deadline) const;

  const int socket_;
  const std::unique_ptr<SSL, decltype(&SSL_free)> encrypted_;
  Deadline request_ends_;
  size_t request_bytes_ = 0;
  bool broken_ = false;
};

}  // namespace artel::dashboard
