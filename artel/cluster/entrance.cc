#include "artel/cluster/entrance.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"

namespace artel {

using namespace comm::control;

namespace {

void pause_a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

}  // namespace

Roster Entrance::wait() {
  Deadline deadline = Deadline::after(options_.join_timeout);
  while (true) {
    bool answered = false;
    const std::vector<std::string> doors = options_.doors;
    for (const std::string& door : doors) {
      const Answer answer = ask_at(door);
      if (answer == Answer::let_in) return roster_;
      if (answer == Answer::nobody) continue;
      answered = true;
      break;  // the list has been updated
    }
    require(
        answered, ErrorKind::communication,
        "[cluster] no worker answers at {}: the run has ended, or its workers cannot be reached "
        "from this host",
        fmt::join(doors, ", "));
    require(!deadline.passed(), ErrorKind::timeout,
            "[cluster] no worker of the run answered within {:g} s (cluster.join_timeout)",
            options_.join_timeout);
    pause_a_moment();
  }
}

// Waits as long as the door sends heartbeats.
Entrance::Answer Entrance::ask_at(const std::string& door) {
  Reached reached = reach(parse_endpoint(door), options_.patience);
  if (reached.socket.get() < 0) return Answer::nobody;
  link_ = Link(std::move(reached.socket));
  link_.introduce(comm::RunSecret(options_.token, options_.encrypt), FrameType::request,
                  to_body(options_.request));
  Clock::time_point heard = Clock::now();
  std::string refusal;
  bool let_in = false, sent_on = false;
  while (!link_.closed && seconds_between(heard, Clock::now()) < options_.patience) {
    link_.flush();
    link_.read([&](const Frame& frame) {
      heard = Clock::now();
      if (frame.type == FrameType::refusal) refusal = frame.body;
      if (frame.type == FrameType::doors) {
        if (std::vector<std::string> doors = doors_from(frame.body); !doors.empty())
          options_.doors = std::move(doors);
        sent_on = options_.doors.front() != door;
      }
      if (frame.type != FrameType::roster) return;
      roster_ = roster_from(frame.body);
      let_in = true;
    });
    require(refusal.empty(), ErrorKind::communication, "[cluster] the run at {} refuses: {}", door,
            refusal);
    require(link_.failure.empty() || link_.known, ErrorKind::communication,
            "[cluster] the run at {}: {}", door, link_.failure);
    if (let_in) return Answer::let_in;
    // Set only by an answer. Earlier workers in the list may be dead.
    if (sent_on) return Answer::elsewhere;
    pause_a_moment();
  }
  // The worker has ended or is regrouping. Try the next door.
  std::rotate(options_.doors.begin(), options_.doors.begin() + 1, options_.doors.end());
  return Answer::elsewhere;
}

void Entrance::check() {
  link_.read([](const Frame&) {});
  require(!link_.closed, ErrorKind::communication,
          "[cluster] worker 0 died while it admitted this worker");
}

std::string first_that_answers(const std::vector<std::string>& addresses) {
  constexpr double kSeconds = 1;
  if (addresses.size() > 1)
    for (const std::string& address : addresses) try {
        if (reach(parse_endpoint(address), kSeconds).socket.get() >= 0) return address;
        log(LogLevel::info, "no answer at {}", address);
      } catch (const Error& error) {
        log(LogLevel::info, "{}", error.what());  // unknown host name
      }
  return addresses.front();
}

void ask_to_leave(const LeaveRequest& request, Deadline deadline) {
  Reached reached = reach(parse_endpoint(request.door), request.patience);
  require(reached.socket.get() >= 0, ErrorKind::communication,
          "[cluster] no answer at {}: the worker has ended or cannot be reached from this host",
          request.door);
  Link link(std::move(reached.socket));
  link.introduce(
      comm::RunSecret(request.token, request.encrypt), FrameType::request,
      to_body(DoorRequest{.purpose = DoorRequest::Purpose::dismiss, .generation = -1, .self = {}}));
  std::string refusal;
  while (!link.closed) {
    link.flush();
    link.read([&](const Frame& frame) {
      if (frame.type == FrameType::refusal) refusal = frame.body;
    });
    require(refusal.empty(), ErrorKind::communication, "[cluster] the worker refuses: {}", refusal);
    require(link.failure.empty() || link.known, ErrorKind::communication, "[cluster] {}: {}",
            request.door, link.failure);
    require(!deadline.passed(), ErrorKind::timeout,
            "[cluster] the worker has not left in time; it may still leave");
    pause_a_moment();
  }
}

}  // namespace artel
