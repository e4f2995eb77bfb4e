// A connection of a browser, with or without TLS, with a deadline for every operation.
//
// A request is limited to kRequestSeconds and kMostRequest bytes, which stops slow and flooding
// clients. A response must make progress every kWriteSeconds. Not thread safe, except `hang_up`.
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

  // Takes ownership of the socket. Encrypts if `encryption` is not null; it must outlive the
  // connection.
  Connection(int socket, SSL_CTX* encryption);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Performs the TLS handshake of an encrypted connection. Call it first. Returns false on failure.
  bool greet();
  // Waits up to `seconds` for the first byte of the next request. Returns false if none arrived.
  bool await_request(double seconds);
  bool is_open() const { return !broken_; }
  // Ends pending reads and writes. Any thread may call it.
  void hang_up() noexcept;

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& address, int& port) const override;
  void get_local_ip_and_port(std::string& address, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  // Repeats an operation of the socket or of TLS until it makes progress. Returns -1 on failure.
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
