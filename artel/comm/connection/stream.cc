#include "artel/comm/connection/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "artel/base/error.h"

namespace artel::comm {
namespace {

int wait_for_socket(int socket, short events, double seconds) {
  pollfd entry{socket, events, 0};
  const int milliseconds = seconds > 0 ? static_cast<int>(std::min(seconds, 1e6) * 1000) + 1 : 0;
  return poll(&entry, 1, milliseconds);
}

}  // namespace

void Stream::encrypt(const Encryption& encryption, bool listens) {
  encrypted_ = std::make_unique<EncryptedSocket>(encryption, socket_.get(), listens);
}

short Stream::events(bool unsent) const {
  if (encrypted_) unsent = encrypted_->waits_to_write() || (unsent && encrypted_->is_ready());
  return static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN);
}

bool Stream::has_bytes() const {
  char byte = 0;
  return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

size_t Stream::send(std::span<const std::byte> data) {
  if (data.empty()) return 0;
  if (encrypted_) return encrypted_->send(data);
  const ssize_t sent = ::send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  require(errno == EAGAIN || errno == EINTR, ErrorKind::communication, "[comm] connection: {}",
          std::strerror(errno));
  return 0;
}

size_t Stream::receive(std::span<std::byte> data, bool& ended) {
  if (encrypted_) return encrypted_->receive(data, ended);
  const ssize_t got = ::recv(socket_.get(), data.data(), data.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  ended = got == 0 || (errno != EAGAIN && errno != EINTR);
  return 0;
}

bool Stream::receive(std::string& out, size_t most) {
  std::array<std::byte, 65536> buffer;
  bool ended = false;
  for (size_t all = 0, got = 0; all < most; all += got) {
    got = receive(buffer, ended);
    if (got == 0) break;
    out.append(reinterpret_cast<const char*>(buffer.data()), got);
  }
  return !ended;
}

bool Stream::receive_within(double seconds, std::string& out) {
  const size_t before = out.size();
  // The last call may already have received encrypted data.
  if (!receive(out)) return out.size() > before;
  if (out.size() > before || wait_for_socket(socket_.get(), POLLIN, seconds) != 1) return true;
  return receive(out) || out.size() > before;
}

void Stream::send_all(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const size_t sent = send(std::as_bytes(std::span(bytes)));
    bytes.remove_prefix(sent);
    if (sent > 0) continue;
    require(!deadline.passed(), ErrorKind::timeout,
            "[comm] connection: cannot send before the deadline");
    wait_for_socket(socket_.get(), events(true), deadline.left());
  }
}

}  // namespace artel::comm
