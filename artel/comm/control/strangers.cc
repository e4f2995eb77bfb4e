#include "artel/comm/control/strangers.h"

#include <sys/socket.h>

#include <array>
#include <map>
#include <string_view>

#include "artel/base/log.h"
#include "artel/base/plural.h"

namespace artel::comm::control {
namespace {

// A process may connect from any loopback address, so all of them count as one.
std::string origin_of(int socket) {
  const std::string address = peer_address(socket);
  for (const std::string_view loopback : {"127.", "::1", "::ffff:127."})
    if (address.starts_with(loopback) && (loopback != "::1" || address == loopback))
      return "this machine";
  return address;
}

struct Count {
  size_t all = 0;
  std::map<std::string, size_t> of_origin;
};

}  // namespace

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
  std::array<Count, 2> counts;  // of silent connections, and of those that have begun to speak
  size_t bytes = 0;
  // Newest first, so that the oldest exceed the limit.
  for (size_t i = strangers.size(); i-- > 0;) {
    Link& stranger = *strangers[i];
    Count& count = counts[stranger.spoke ? 1 : 0];
    size_t& from_there = count.of_origin[origin_of(stranger.stream.socket())];
    if (count.all == kMost / 2 || from_there == kMostOfAddress / 2 ||
        bytes + stranger.reader.pending() > kMostBytes ||
        seconds_between(stranger.since, now) > kMostSeconds) {
      send_away(stranger);
      continue;
    }
    ++count.all;
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
