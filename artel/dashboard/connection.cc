#include "artel/dashboard/connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace artel::dashboard {
namespace {

void name_of(const sockaddr_storage& place, socklen_t length, std::string& address, int& port) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&place), length, text.data(), text.size(), nullptr,
              0, NI_NUMERICHOST);
  address = text.data();
  // The port is at the same place for both families.
  port = ntohs(reinterpret_cast<const sockaddr_in&>(place).sin_port);
}

}  // namespace

Connection::Connection(int socket, SSL_CTX* encryption)
    : socket_(socket),
      encrypted_(encryption != nullptr ? SSL_new(encryption) : nullptr, &SSL_free),
      request_ends_(Deadline::after(kRequestSeconds)) {
  const int yes = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

bool Connection::greet() {
  if (!encrypted_) return true;
  SSL_set_fd(encrypted_.get(), socket_);
  return attempt([this] { return SSL_accept(encrypted_.get()); }, POLLIN, request_ends_) > 0;
}

Connection::~Connection() {
  if (encrypted_ && !broken_) SSL_shutdown(encrypted_.get());
  ::shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
}

void Connection::hang_up() noexcept { ::shutdown(socket_, SHUT_RDWR); }

bool Connection::wait(short events, Deadline deadline) const {
  pollfd entry{socket_, events, 0};
  const int milliseconds = static_cast<int>(std::max(0.0, deadline.left()) * 1000) + 1;
  return !deadline.passed() && ::poll(&entry, 1, milliseconds) == 1;
}

template <typename Operation>
ssize_t Connection::attempt(Operation operation, short events, Deadline deadline) {
  while (!broken_) {
    ERR_clear_error();  // stale errors of this thread would be attributed to this operation
    const ssize_t done = operation();
    if (done > 0) return done;
    if (encrypted_) {
      const int error = SSL_get_error(encrypted_.get(), static_cast<int>(done));
      if (error == SSL_ERROR_ZERO_RETURN) return 0;
      if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      else
        broken_ = true;
    } else if (done == 0 || (errno != EAGAIN && errno != EINTR)) {
      broken_ = done < 0;
      return done;
    }
    if (!broken_ && !wait(events, deadline)) broken_ = true;
  }
  return -1;
}

bool Connection::await_request(double seconds) {
  if (broken_ || !(is_readable() || wait(POLLIN, Deadline::after(seconds)))) return false;
  request_ends_ = Deadline::after(kRequestSeconds);
  request_bytes_ = 0;
  return true;
}

bool Connection::is_readable() const {
  if (encrypted_ && SSL_pending(encrypted_.get()) > 0) return true;
  pollfd entry{socket_, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

bool Connection::is_writable() const {
  pollfd entry{socket_, POLLOUT | POLLRDHUP, 0};
  return !broken_ && ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT) != 0 &&
         (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

ssize_t Connection::read(char* to, size_t size) {
  size = std::min(size, kMostRequest - request_bytes_);
  if (size == 0) broken_ = true;
  const ssize_t got = attempt(
      [&] {
        return encrypted_ ? SSL_read(encrypted_.get(), to, static_cast<int>(size))
                          : ::recv(socket_, to, size, 0);
      },
      POLLIN, request_ends_);
  if (got > 0) request_bytes_ += static_cast<size_t>(got);
  return got;
}

ssize_t Connection::write(const char* from, size_t size) {
  constexpr size_t kMost = 1 << 20;
  size = std::min(size, kMost);
  if (size == 0) return 0;
  return attempt(
      [&] {
        return encrypted_ ? SSL_write(encrypted_.get(), from, static_cast<int>(size))
                          : ::send(socket_, from, size, MSG_NOSIGNAL);
      },
      POLLOUT, Deadline::after(kWriteSeconds));
}

void Connection::get_remote_ip_and_port(std::string& address, int& port) const {
  sockaddr_storage place{};
  socklen_t length = sizeof place;
  ::getpeername(socket_, reinterpret_cast<sockaddr*>(&place), &length);
  name_of(place, length, address, port);
}

void Connection::get_local_ip_and_port(std::string& address, int& port) const {
  sockaddr_storage place{};
  socklen_t length = sizeof place;
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&place), &length);
  name_of(place, length, address, port);
}

}  // namespace artel::dashboard
