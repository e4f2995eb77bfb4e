// Who takes part in a run, as the others know it.
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
  // Which of its launcher's workers it is; one that was started again has the place of the one
  // before it. -1: the user has started it.
  int32_t place = -1;
  // The step after which the one before it was lost; -1: there was none.
  int64_t after_step = -1;
  int32_t server = -1;  // which of the parameter servers it is; -1: a worker
};

// "worker 2", "server 0"
std::string name_of(const Participant& who);

}  // namespace artel::comm::control
