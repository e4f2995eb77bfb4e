#pragma once

#include <csignal>

namespace artel::comm {

// Ignores SIGPIPE. Gloo and OpenSSL write to sockets without MSG_NOSIGNAL, so after the death of a
// peer SIGPIPE would kill this process before it can report the cause. Keeps a handler set by the
// user.
inline void survive_broken_pipes() {
  struct sigaction current = {};
  sigaction(SIGPIPE, nullptr, &current);
  if (current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace artel::comm
