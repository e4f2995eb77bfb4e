// A process that knows the token: it proves it to a listener, and then sends whatever it likes.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <string_view>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/comm/control/link.h"

namespace artel::fuzz {

// The first frame of `text` has the type and the claims of the introduction. The rest is sent
// behind it. With `awaits_end`, the listener must hang up within seconds after this side has.
// Otherwise it may also have ended.
inline void say_as_member(comm::FileHandle socket, std::string_view text, bool awaits_end) {
  namespace control = comm::control;
  static const comm::RunSecret secret("secret", false);
  control::FrameReader first;
  first.feed(text);
  const std::optional<control::Frame> claims = first.next();
  if (!claims) return;
  control::Link link(std::move(socket));
  link.introduce(secret, claims->type, claims->body);
  const Deadline deadline = Deadline::after(awaits_end ? 20 : 0.1);
  for (bool sent = false; !link.closed;) {
    if (link.known && !sent) {
      sent = true;
      link.unsent += first.take_rest();
    }
    link.flush();
    if (sent && link.unsent.empty()) {
      ::shutdown(link.stream.socket(), SHUT_WR);
      if (!awaits_end) return;
    }
    pollfd entry{link.stream.socket(), link.events(), 0};
    ::poll(&entry, 1, 10);
    link.read([](const control::Frame&) {});
    if (!awaits_end && deadline.passed()) return;
    require(!deadline.passed(), ErrorKind::internal, "the listener does not hang up");
  }
}

}  // namespace artel::fuzz
