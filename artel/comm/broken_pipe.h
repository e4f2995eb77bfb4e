#pragma once

#include <csignal>

namespace artel::comm {

// Gloo and OpenSSL write to sockets without MSG_NOSIGNAL: after the death of a peer, SIGPIPE would
// end this process before it can say who died. A handler set by the user is left alone.
inline void survive_broken_pipes() {
  struct sigaction current = {};
  sigaction(SIGPIPE, nullptr, &current);
  if (current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace artel::comm
