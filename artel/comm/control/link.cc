#include "artel/comm/control/link.h"

#include <sys/socket.h>

#include "artel/base/log.h"

namespace artel::comm::control {

void Link::flush() {
  while (!unsent.empty()) {
    const ssize_t sent =
        ::send(socket.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return;
    unsent.erase(0, sent);
  }
}

void Link::read(const std::function<void(const Frame&)>& handle) {
  std::string bytes;
  const bool open = receive_some(socket.get(), 0, bytes);
  try {
    reader.feed(bytes);
    while (!closed) {
      const auto frame = reader.next();
      if (!frame) break;
      handle(*frame);
    }
  } catch (const Error& error) {
    log(LogLevel::debug, "control connection closed: {}", error.what());
    closed = true;
  }
  if (!open) closed = true;
}

}  // namespace artel::comm::control
