#include "artel/cluster/door.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/time.h"

namespace artel {
namespace {

using namespace comm::control;

constexpr int kBeatMilliseconds = 500;

comm::FileHandle listen_for_run(const Endpoint& place, const std::string& token) {
  require_token(place, token);
  return listen_at(place);
}

}  // namespace

Door::Door(const Endpoint& place, const std::string& token, bool encrypt)
    : secret_(token, encrypt),
      listener_(listen_for_run(place, token)),
      address_(place.local() ? place.host
                             : to_string({.host = place.host, .port = port_of(listener_.get())})),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { work(); }) {}

Door::~Door() {
  stopping_ = true;
  wake();
  thread_.join();
}

void Door::wake() { eventfd_write(bell_.get(), 1); }

bool Door::open_also_at(const Endpoint& place) {
  if (has_second_listener()) return true;
  comm::FileHandle listener;
  try {
    listener = listen_at(place);  // may ask a name server
  } catch (const Error&) {
    return false;  // on another machine, or the address is in use
  }
  const MutexLock lock(mutex_);
  second_listener_ = std::move(listener);
  wake();
  return true;
}

bool Door::has_second_listener() {
  const MutexLock lock(mutex_);
  return second_listener_.get() >= 0;
}

void Door::set_membership(int64_t generation, const std::vector<Participant>& members, int own,
                          int next_number) {
  const MutexLock lock(mutex_);
  next_number_ = next_number;
  generation_ = generation;
  members_ = members;
  own_ = own;
  // Visitors may have been removed from the membership. Members that wait for this worker must
  // learn that it is outside now.
  for (Visitor& visitor : visitors_) {
    if (visitor.request.generation < 0 || visitor.closed) continue;
    const std::string reason = objection(visitor.request);
    if (!reason.empty())
      visitor.queue(FrameType::refusal, reason);
    else if (members_.empty())
      visitor.queue(FrameType::leave, {});
  }
  wake();
}

std::vector<Door::Guest> Door::waiting(DoorRequest::Purpose purpose) {
  const MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  std::vector<Guest> guests;
  for (const Visitor& visitor : visitors_)
    if (visitor.wants_in && visitor.request.purpose == purpose && !visitor.answered &&
        !visitor.closed)
      guests.push_back({.id = visitor.id, .request = visitor.request});
  return guests;
}

std::vector<Door::Guest> Door::members_here() {
  const MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  std::vector<Guest> guests;
  for (const Visitor& visitor : visitors_)
    if (visitor.wants_in && visitor.request.purpose == DoorRequest::Purpose::enter &&
        !visitor.closed)
      guests.push_back({visitor.id, visitor.request, visitor.answered, visitor.agreed});
  return guests;
}

std::set<int> Door::take_callers() {
  const MutexLock lock(mutex_);
  return std::exchange(callers_, {});
}

void Door::set_leader(int number) {
  const MutexLock lock(mutex_);
  if (std::exchange(leader_, number) == number) return;
  for (Visitor& visitor : visitors_)
    if (visitor.known && !visitor.closed) visitor.queue(FrameType::beat, std::to_string(number));
  wake();
}

bool Door::has_left(int number) {
  const MutexLock lock(mutex_);
  return left_.contains(number);
}

void Door::tell(int64_t guest, const Frame& frame) {
  const MutexLock lock(mutex_);
  for (Visitor& visitor : visitors_) {
    if (visitor.id != guest) continue;
    visitor.answered = true;
    visitor.queue(frame.type, frame.body);
    visitor.flush();
  }
  wake();
}

bool Door::is_here(int64_t guest) {
  const MutexLock lock(mutex_);
  return std::any_of(visitors_.begin(), visitors_.end(), [&](const Visitor& visitor) {
    return visitor.id == guest && !visitor.closed;
  });
}

void Door::dismiss() {
  const MutexLock lock(mutex_);
  visitors_.remove_if([](const Visitor& visitor) { return visitor.wants_in; });
}

void Door::dismiss_answered() {
  const MutexLock lock(mutex_);
  visitors_.remove_if([](const Visitor& visitor) { return visitor.wants_in && visitor.answered; });
}

void Door::wait(double seconds) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this]() ARTEL_REQUIRES(mutex_) { return changes_ != seen_; });
  seen_ = changes_;
}

void Door::work() try {
  Clock::time_point next_beat = Clock::now();
  while (!stopping_) {
    std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}};
    for (const Visitor& stranger : strangers_)
      entries.push_back({stranger.stream.socket(), stranger.events(), 0});
    int second_listener = -1;  // -1 without a second listener
    {
      const MutexLock lock(mutex_);
      second_listener = second_listener_.get();
      for (const Visitor& visitor : visitors_)
        entries.push_back({visitor.stream.socket(), visitor.events(), 0});
    }
    const bool alone = entries.size() == 2;
    entries.push_back({second_listener, POLLIN, 0});
    poll(entries.data(), entries.size(), alone ? -1 : kBeatMilliseconds);
    eventfd_t rung = 0;
    eventfd_read(bell_.get(), &rung);
    if ((entries.front().revents & POLLIN) != 0)
      Strangers::accept(listener_.get(), secret_, strangers_);
    if ((entries.back().revents & POLLIN) != 0)
      Strangers::accept(second_listener, secret_, strangers_);
    serve_strangers();
    const bool beats = Clock::now() >= next_beat;
    if (beats) next_beat = Clock::now() + std::chrono::milliseconds(kBeatMilliseconds);
    serve_visitors(beats);
  }
} catch (const std::exception& error) {
  // The next call of guests() rethrows it.
  const MutexLock lock(mutex_);
  failure_ = std::current_exception();
  newcomers_ = 1;
  note_change();
}

void Door::note_change() {
  ++changes_;
  changed_.notify_all();
}

bool Door::leads() const { return !members_.empty() && members_.front().number == own_; }

std::vector<std::string> Door::doors() const {
  std::vector<std::string> doors;
  for (const Participant& member : members_) doors.push_back(member.door);
  return doors;
}

void Door::serve_strangers() {
  for (Visitor& stranger : strangers_) {
    stranger.read([&](const Frame& frame) { greet(stranger, frame); });
    stranger.flush();
  }
  limits_.tidy(strangers_);
  // A stranger that has sent its request is kept even if it has closed the connection.
  strangers_.remove_if([](const Visitor& stranger) { return stranger.closed && !stranger.known; });
}

// Answers the first message of an unauthenticated connection. With the right token, it becomes a
// visitor.
void Door::greet(Visitor& stranger, const Frame& frame) {
  require(frame.type == FrameType::request || frame.type == FrameType::hello, ErrorKind::corrupt,
          "[door] got a message of type {}, expected a request", static_cast<int>(frame.type));
  const comm::Challenger::Verdict verdict = stranger.judge(secret_.key, frame);
  if (!verdict.objection.empty()) {
    limits_.note_refusal(stranger, verdict.objection);
    return stranger.refuse(verdict.objection);
  }
  if (frame.type == FrameType::hello) {  // it expects a run that has not started yet
    const MutexLock lock(mutex_);
    return stranger.queue(FrameType::doors, to_body(doors()));
  }
  stranger.request = door_request_from(verdict.claims);
  stranger.known = true;
}

void Door::serve_visitors(bool beats) {
  const MutexLock lock(mutex_);
  for (auto next = strangers_.begin(); next != strangers_.end();) {
    const auto stranger = next++;
    if (!stranger->known) continue;
    receive(*stranger);
    visitors_.splice(visitors_.end(), strangers_, stranger);
  }
  for (Visitor& visitor : visitors_) {
    // After its request, a visitor sends only its agreement.
    visitor.read([&](const Frame& frame) ARTEL_REQUIRES(mutex_) {
      require(frame.type == FrameType::agree && visitor.answered, ErrorKind::corrupt,
              "[door] got a message of type {} after a request", static_cast<int>(frame.type));
      visitor.agreed = true;
      note_change();
    });
    if (visitor.closed && visitor.wants_in) note_change();
    // Sends nothing more to a visitor that does not read.
    if (beats && visitor.unsent.empty()) visitor.queue(FrameType::beat, std::to_string(leader_));
    visitor.flush();
  }
  visitors_.remove_if([](const Visitor& visitor) { return visitor.closed; });
  newcomers_ = static_cast<int>(
      std::count_if(visitors_.begin(), visitors_.end(),
                    [](const Visitor& visitor) { return visitor.wants_in && !visitor.answered; }));
}

// Handles the request of a visitor.
void Door::receive(Visitor& visitor) {
  if (const std::string reason = objection(visitor.request); !reason.empty())
    return visitor.refuse(reason);
  visitor.id = ++visitors_ever_;
  if (visitor.request.generation >= 0) callers_.insert(visitor.request.self.number);
  // A newcomer that was admitted but never received the answer is not part of the run.
  const bool outside = members_.empty();
  switch (visitor.request.purpose) {
    case DoorRequest::Purpose::probe:
      if (outside) visitor.queue(FrameType::leave, {});
      visitor.queue(FrameType::beat, std::to_string(leader_));
      break;
    case DoorRequest::Purpose::enter:
      if (outside) return visitor.queue(FrameType::leave, {});
      visitor.wants_in = true;
      visitor.queue(FrameType::beat, std::to_string(leader_));
      break;
    case DoorRequest::Purpose::join:
      if (outside) {
        visitor.closed = true;
        return;
      }
      // Only the first member admits; others redirect.
      visitor.wants_in = leads();
      visitor.queue(FrameType::doors, to_body(doors()));
      break;
    case DoorRequest::Purpose::leave:
      left_.insert(visitor.request.self.number);
      visitor.queue(FrameType::leave, {});
      break;
    case DoorRequest::Purpose::dismiss:
      dismissed_ = true;
      visitor.queue(FrameType::leave, {});
      break;
  }
  note_change();
}

std::string Door::objection(const DoorRequest& request) const {
  const bool member = std::any_of(members_.begin(), members_.end(), [&](const Participant& each) {
    return each.number == request.self.number && each.door == request.self.door;
  });
  // Does not depend on the generation: a worker that hung may have led a membership of its own.
  if (request.generation >= 0 && !member &&
      (request.generation <= generation_ || request.self.number < next_number_))
    return fmt::format(
        "{} is no longer part of the run: it did not answer, and the others continued without it",
        name_of(request.self));
  return {};
}

}  // namespace artel
