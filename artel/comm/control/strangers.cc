#include "artel/comm/control/strangers.h"

#include <sys/socket.h>

#include <map>

#include "artel/base/log.h"
#include "artel/base/plural.h"

namespace artel::comm::control {

FileHandle Strangers::accept_one(int listener) {
  // Processes of other users may connect faster than they are closed.
  constexpr int kMostTries = 1024;
  for (int i = 0; i < kMostTries; ++i) {
    FileHandle socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0 || is_own_user(socket.get())) return socket;
  }
  return FileHandle();
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
  std::map<std::string, size_t> of_address;
  size_t bytes = 0;
  // Newest first, so that the oldest exceed the limit.
  for (size_t i = strangers.size(), kept = 0; i-- > 0;) {
    Link& stranger = *strangers[i];
    size_t& from_there = of_address[peer_address(stranger.stream.socket())];
    if (kept == kMost || from_there == kMostOfAddress ||
        bytes + stranger.reader.pending() > kMostBytes ||
        seconds_between(stranger.since, now) > kMostSeconds) {
      send_away(stranger);
      continue;
    }
    ++kept;
    ++from_there;
    bytes += stranger.reader.pending();
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
