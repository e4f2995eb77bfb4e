#include "artel/comm/tcp/pair.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "artel/base/error.h"

namespace artel::comm::tcp {
namespace {

// Bytes per call of `move` at most, so that other connections have their turn.
constexpr size_t kTurnBytes = 512 << 10;
// The head of a message and its first bytes travel together: about one record of TLS.
constexpr size_t kStagedBytes = 16 << 10;

}  // namespace

Pair::Pair(Stream stream, std::string received, PeerMeter& meter)
    : stream_(std::move(stream)), meter_(meter), early_(std::move(received)) {}

void Pair::post(Message& message) {
  const MutexLock lock(mutex_);
  if (!broken_.empty()) return;
  if (!message.sends) {
    places_[message.tag].push_back({&message, message.data.size()});
    notices_.push_back({Kind::ready, message.tag, message.data.size()});
    return;
  }
  const auto asked = asked_.find(message.tag);
  if (asked == asked_.end()) {
    unasked_[message.tag].push_back(&message);
    return;
  }
  const uint64_t bytes = asked->second.front();
  asked->second.pop_front();
  if (asked->second.empty()) asked_.erase(asked);
  begin_to_send(message, bytes);
}

bool Pair::wait(Message& message, double seconds) {
  MutexLock lock(mutex_);
  ++waiting_;
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&]() ARTEL_REQUIRES(mutex_) { return message.done || !broken_.empty(); });
  --waiting_;
  require(message.done || broken_.empty(), ErrorKind::communication, "{}", broken_);
  return message.done;
}

void Pair::withdraw(Message& message) {
  const MutexLock lock(mutex_);
  if (message.done) return;
  if (!message.sends) {
    if (const auto found = places_.find(message.tag); found != places_.end())
      for (Place& place : found->second)
        if (place.message == &message) place.message = nullptr;
    if (in_message_ && place_.message == &message) place_.message = nullptr;
    return;
  }
  if (const auto found = unasked_.find(message.tag); found != unasked_.end()) {
    std::erase(found->second, &message);
    if (found->second.empty()) unasked_.erase(found);
  }
  // The other side expects it.
  const bool promised = std::erase(outgoing_, &message) > 0 || current_ == &message;
  if (promised) break_off("a message was given up while it was being sent");
}

short Pair::events() {
  const MutexLock lock(mutex_);
  if (!broken_.empty()) return 0;
  const bool unsent = staged_sent_ < staged_.size() || current_ != nullptr || !notices_.empty() ||
                      !outgoing_.empty();
  return stream_.events(unsent);
}

bool Pair::is_settled() {
  const MutexLock lock(mutex_);
  if (!broken_.empty()) return true;
  int queued = 0;
  return current_ == nullptr && outgoing_.empty() && staged_sent_ == staged_.size() &&
         (ioctl(stream_.socket(), SIOCOUTQ, &queued) != 0 || queued == 0);
}

void Pair::give_up(const std::string& why) {
  const MutexLock lock(mutex_);
  break_off(why);
}

bool Pair::move() {
  const MutexLock lock(mutex_);
  if (!broken_.empty()) return false;
  try {
    const bool more = receive();
    if (broken_.empty()) return send() || more;
  } catch (const Error& error) {
    // Process the bytes that arrived before the connection broke.
    try {
      while (broken_.empty() && receive()) continue;
    } catch (const Error&) {
      // nothing more
    }
    break_off(error.what());
  }
  return false;
}

// Returns true if more data may be available at once.
bool Pair::receive() {
  bool ended = false;
  size_t all = 0;
  while (all < kTurnBytes && !ended && broken_.empty()) {
    size_t got = 0;
    if (!in_message_) {
      got = take(std::as_writable_bytes(std::span(&head_, 1)).subspan(head_received_), ended);
      head_received_ += got;
      if (head_received_ == sizeof(head_)) handle_head();
    } else if (place_.message != nullptr) {
      got = take(place_.message->data.subspan(place_received_), ended);
      place_received_ += got;
    } else {
      std::array<std::byte, 4096> dropped;
      got = take(std::span(dropped).first(std::min(dropped.size(), place_.bytes - place_received_)),
                 ended);
      place_received_ += got;
    }
    meter_.count_received(got);
    if (in_message_ && place_received_ == place_.bytes) {
      meter_.count_received(0, 1);
      if (place_.message != nullptr) finish(*place_.message);
      in_message_ = false;
      continue;
    }
    if (got == 0 && !ended) return false;
    all += got;
  }
  if (ended) break_off("it was closed");
  return !ended;
}

size_t Pair::take(std::span<std::byte> into, bool& ended) {
  if (early_.empty()) return stream_.receive(into, ended);
  const size_t bytes = std::min(into.size(), early_.size());
  std::memcpy(into.data(), early_.data(), bytes);
  early_.erase(0, bytes);
  return bytes;
}

void Pair::handle_head() {
  head_received_ = 0;
  if (head_.kind == Kind::ready) {
    const auto found = unasked_.find(head_.tag);
    if (found == unasked_.end()) {
      asked_[head_.tag].push_back(head_.bytes);
      return;
    }
    Message* const message = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) unasked_.erase(found);
    return begin_to_send(*message, head_.bytes);
  }
  const auto found = places_.find(head_.tag);
  require(head_.kind == Kind::data && found != places_.end(), ErrorKind::corrupt,
          "[comm tcp] got a message that was not requested");
  place_ = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) places_.erase(found);
  require(place_.bytes == head_.bytes, ErrorKind::corrupt,
          "[comm tcp] message: got {} bytes, expected {}", head_.bytes, place_.bytes);
  place_received_ = 0;
  in_message_ = true;
}

void Pair::begin_to_send(Message& message, uint64_t expected) {
  if (message.data.size() == expected)
    outgoing_.push_back(&message);
  else
    break_off(
        fmt::format("[comm tcp] message: got one of {} bytes to send, but the other side "
                    "expects {}",
                    message.data.size(), expected));
}

// Notices go before messages: the other side may be waiting for them.
void Pair::stage() {
  staged_.clear();
  staged_sent_ = 0;
  const auto append = [&](const Head& head) ARTEL_REQUIRES(mutex_) {
    staged_.append(reinterpret_cast<const char*>(&head), sizeof(head));
  };
  while (!notices_.empty() && staged_.size() < kStagedBytes) {
    append(notices_.front());
    notices_.pop_front();
  }
  if (outgoing_.empty() || staged_.size() >= kStagedBytes) return;
  current_ = outgoing_.front();
  outgoing_.pop_front();
  append({Kind::data, current_->tag, current_->data.size()});
  current_sent_ =
      std::min(current_->data.size(), kStagedBytes - std::min(kStagedBytes, staged_.size()));
  staged_.append(reinterpret_cast<const char*>(current_->data.data()), current_sent_);
}

// Returns true if more data may be sent at once.
bool Pair::send() {
  for (size_t all = 0; all < kTurnBytes;) {
    if (staged_sent_ == staged_.size() && current_ == nullptr) stage();
    size_t sent = 0;
    if (staged_sent_ < staged_.size()) {
      sent = stream_.send(std::as_bytes(std::span(staged_)).subspan(staged_sent_));
      staged_sent_ += sent;
    } else if (current_ != nullptr) {
      sent = stream_.send(current_->data.subspan(current_sent_));
      current_sent_ += sent;
    }
    meter_.count_sent(sent);
    if (current_ != nullptr && staged_sent_ == staged_.size() &&
        current_sent_ == current_->data.size()) {
      meter_.count_sent(0, 1);
      finish(*std::exchange(current_, nullptr));
    }
    if (sent == 0) return false;
    all += sent;
  }
  return true;
}

void Pair::finish(Message& message) {
  message.done = true;
  if (waiting_ > 0) changed_.notify_all();
}

void Pair::break_off(const std::string& why) {
  if (broken_.empty()) broken_ = why;
  current_ = nullptr;
  changed_.notify_all();
}

}  // namespace artel::comm::tcp
