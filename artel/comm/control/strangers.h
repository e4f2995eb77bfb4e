// Limits unauthenticated connections in number, time, and size, so that they neither fill memory
// nor keep a worker from joining.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/control/link.h"

namespace artel::comm::control {

class Strangers {
 public:
  // Connections: half for those that have begun to prove the token, half for silent ones. The
  // oldest of each half close first, so idle connections never displace one that proves itself.
  static constexpr size_t kMost = 256;
  static constexpr size_t kMostOfAddress = 128;   // of one address; loopback addresses count as one
  static constexpr size_t kMostBytes = 16 << 20;  // unread bytes of all connections
  static constexpr double kMostSeconds = 10;      // from connecting to being known

  // Accepts all pending connections, appends a link for each, and sends it a challenge. The
  // listener must not block. On a local socket, processes of other users get none.
  template <typename L>
  static void accept(int listener, const RunSecret& secret, std::list<L>& links) {
    // Accepts at most kMost connections at a time, so that links are read before the next ones.
    for (size_t i = 0; i < kMost; ++i) {
      FileHandle socket = accept_one(listener);
      if (socket.get() < 0) return;
      links.emplace_back(std::move(socket));
      links.back().challenge(secret);
    }
  }

  // Notes one that is refused, for the log.
  void note_refusal(const Link& stranger, const std::string& reason);

  // Closes links that exceed the limits of number, size, or time. Logs this once a minute.
  template <typename L>
  void tidy(std::list<L>& links) {
    std::vector<Link*> strangers;
    for (L& link : links)
      if (!link.known && !link.closed) strangers.push_back(&link);
    tidy(std::move(strangers));
  }

 private:
  static FileHandle accept_one(int listener);
  void tidy(std::vector<Link*> strangers);  // by age
  void send_away(Link& stranger);

  int64_t sent_away_ = 0, refused_ = 0;
  std::string last_, last_refused_;  // where they came from
  std::string reason_;               // of the last refusal
  Clock::time_point next_word_ = Clock::now();
};

}  // namespace artel::comm::control
