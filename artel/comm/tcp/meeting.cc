#include "artel/comm/tcp/meeting.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <list>

#include "artel/base/error.h"
#include "artel/comm/control/strangers.h"

namespace artel::comm::tcp {
namespace {

using control::Frame;
using control::FrameType;
using control::Link;

constexpr int kLookMilliseconds = 20;

// The identity that a caller must prove to this listener.
std::string claims_of(int caller, int listener, const std::string& group) {
  return fmt::format("data from rank {} to rank {} of {}", caller, listener, group);
}

class Meeting {
 public:
  Meeting(const FileHandle& listener, const MeetingOptions& options)
      : listener_(listener), options_(options) {}

  std::vector<Met> run() {
    for (int peer = 0; peer < options_.rank; ++peer) call(peer);
    while (!complete()) {
      wait();
      for (Guest& guest : guests_) serve(guest);
      strangers_.tidy(guests_);
      guests_.remove_if([](const Guest& guest) { return guest.closed && guest.rank < 0; });
      if (options_.meanwhile) options_.meanwhile();
      if (options_.deadline.passed()) fail_for(missing(), "no connection before the deadline");
    }
    std::vector<Met> met(options_.addresses.size());
    for (Guest& guest : guests_)
      if (guest.rank >= 0) met[guest.rank] = {std::move(guest.stream), guest.reader.take_rest()};
    return met;
  }

 private:
  struct Guest : Link {
    using Link::Link;
    int rank = -1;        // the other side's rank; -1 until known
    bool called = false;  // by this one
  };

  void call(int peer) {
    control::Reached reached =
        control::reach(control::parse_endpoint(options_.addresses[peer]), options_.deadline.left());
    if (reached.socket.get() < 0)
      fail_for(peer,
               reached.refused
                   ? "no process listens there; wrong network interface? try naming one that both "
                     "machines share"
                   : "no answer; wrong network interface? try naming one that "
                     "both machines share");
    Guest& guest = guests_.emplace_back(std::move(reached.socket));
    guest.rank = peer;
    guest.called = true;
    guest.only_introduces = true;
    guest.introduce(options_.secret, FrameType::hello,
                    claims_of(options_.rank, peer, options_.group));
  }

  void wait() {
    std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
    for (const Guest& guest : guests_)
      if (!is_ready(guest)) entries.push_back({guest.stream.socket(), guest.events(), 0});
    poll(entries.data(), entries.size(), kLookMilliseconds);
    if ((entries[0].revents & POLLIN) != 0)
      control::Strangers::accept(listener_.get(), options_.secret, guests_);
  }

  // After authentication, the connection carries messages of the group.
  void serve(Guest& guest) {
    if (!guest.known) guest.read([&](const Frame& frame) { handle(guest, frame); });
    guest.flush();
    if (guest.closed && guest.rank >= 0)
      fail_for(guest.rank, guest.failure.empty() ? "it closed the connection" : guest.failure);
  }

  void handle(Guest& guest, const Frame& frame) {
    if (guest.called) {
      require(frame.type != FrameType::refusal, ErrorKind::communication, "it refuses: {}",
              frame.body);
      return;
    }
    require(frame.type == FrameType::hello, ErrorKind::corrupt, "[comm tcp] expected a hello");
    const Challenger::Verdict verdict = guest.judge(options_.secret.key, frame);
    std::string objection = verdict.objection;
    if (objection.empty()) {
      guest.rank = caller_of(verdict.claims);
      if (guest.rank < 0) objection = "it is not expected here";
    }
    if (!objection.empty()) {
      strangers_.note_refusal(guest, objection);
      return guest.refuse(objection);
    }
    guest.known = true;
  }

  // The rank with these claims that has not connected yet; -1 if none.
  int caller_of(const std::string& claims) const {
    for (int peer = options_.rank + 1; peer < std::ssize(options_.addresses); ++peer)
      if (claims == claims_of(peer, options_.rank, options_.group))
        return is_here(peer) ? -1 : peer;
    return -1;
  }

  bool is_ready(const Guest& guest) const { return guest.known && guest.unsent.empty(); }

  bool is_here(int peer) const {
    return std::any_of(guests_.begin(), guests_.end(),
                       [&](const Guest& guest) { return guest.rank == peer && is_ready(guest); });
  }

  int missing() const {
    for (int peer = 0; peer < std::ssize(options_.addresses); ++peer)
      if (peer != options_.rank && !is_here(peer)) return peer;
    return -1;
  }
  bool complete() const { return missing() < 0; }

  [[noreturn]] void fail_for(int peer, const std::string& why) const {
    fail(ErrorKind::communication,
         "[comm tcp] rank {} at {} has no connection with rank {} on host {} at {}: {}",
         options_.rank, options_.addresses[options_.rank], peer, options_.hosts[peer],
         options_.addresses[peer], why);
  }

  const FileHandle& listener_;
  const MeetingOptions& options_;
  std::list<Guest> guests_;
  control::Strangers strangers_;
};

}  // namespace

std::vector<Met> meet(const FileHandle& listener, const MeetingOptions& options) {
  std::vector<Met> met = Meeting(listener, options).run();
  const int yes = 1;
  for (const Met& each : met)
    if (each.stream.socket() >= 0)
      setsockopt(each.stream.socket(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return met;
}

}  // namespace artel::comm::tcp
