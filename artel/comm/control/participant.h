// A participant of a run, as known to the others.
//
//   for (const artel::comm::control::Participant& member : cluster.membership().members)
//     artel::println("{} on host {}", name_of(member), member.host);
#pragma once

#include <cstdint>
#include <string>

namespace artel::comm::control {

// A worker or server.
struct Participant {
  int32_t number = -1;  // in the run; never given to another one
  std::string host;
  int32_t process = 0;
  std::string door;  // where it can be reached
  // Its place among its launcher's workers. A restarted worker keeps the place of its predecessor.
  // -1 if started by the user.
  int32_t place = -1;
  // The step after which its predecessor was lost; -1 without a predecessor.
  int64_t after_step = -1;
  int32_t server = -1;  // index among the parameter servers; -1 for a worker
};

// "worker 2", "server 0"
std::string name_of(const Participant& who);

}  // namespace artel::comm::control
