#include "artel/comm/control/strangers.h"

#include <sys/socket.h>

#include <algorithm>

#include "artel/base/log.h"
#include "artel/base/plural.h"

namespace artel::comm::control {

FileHandle Strangers::accept_one(const FileHandle& listener) {
  while (true) {
    FileHandle socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0 || is_own_user(socket.get())) return socket;
  }
}

void Strangers::note_refusal(const Link& stranger, const std::string& reason) {
  last_refused_ = peer_address(stranger.stream.socket());
  reason_ = reason;
  ++refused_;
}

void Strangers::send_away(Link& stranger) {
  last_ = peer_address(stranger.stream.socket());
  stranger.closed = true;
  ++sent_away_;
}

void Strangers::tidy(std::vector<Link*> strangers) {
  const Clock::time_point now = Clock::now();
  size_t bytes = 0;
  for (size_t i = 0; i < strangers.size(); ++i) {
    Link& stranger = *strangers[i];
    if (strangers.size() - i > kMost || seconds_between(stranger.since, now) > kMostSeconds)
      send_away(stranger);
    else
      bytes += stranger.reader.pending();
  }
  while (bytes > kMostBytes) {
    Link& largest =
        **std::max_element(strangers.begin(), strangers.end(), [](const Link* a, const Link* b) {
          const auto size = [](const Link& link) {
            return link.closed ? 0 : link.reader.pending();
          };
          return size(*a) < size(*b);
        });
    bytes -= largest.reader.pending();
    send_away(largest);
  }
  if (sent_away_ + refused_ == 0 || now < next_word_) return;
  if (sent_away_ > 0)
    log(LogLevel::warning, "closed {} that sent no greeting, the last from {}",
        counted(sent_away_, "connection"), last_);
  if (refused_ > 0)
    log(LogLevel::warning, "refused {}, the last from {}: {}", counted(refused_, "connection"),
        last_refused_, reason_);
  sent_away_ = refused_ = 0;
  next_word_ = now + std::chrono::minutes(1);
}

}  // namespace artel::comm::control
