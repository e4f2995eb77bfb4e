// A foreign process that connects to a listener, sends a message, and reads the answers.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/comm/connection/file_handle.h"

namespace artel::fuzz {

// Sends it and hangs up. The listener must hang up, too, within seconds.
inline void say(const comm::FileHandle& socket, std::string_view text) {
  ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  ::shutdown(socket.get(), SHUT_WR);
  const Deadline deadline = Deadline::after(20);
  for (char buffer[4096];;) {
    pollfd entry{socket.get(), POLLIN, 0};
    if (::poll(&entry, 1, 1000) == 1 && ::recv(socket.get(), buffer, sizeof buffer, 0) <= 0) return;
    require(!deadline.passed(), ErrorKind::internal, "the listener does not hang up");
  }
}

}  // namespace artel::fuzz
