// A newcomer's side of joining a running training. The newcomer connects to the door of worker 0,
// waits for the end of a step, and receives its membership.
#pragma once

#include <string>
#include <vector>

#include "artel/comm/control/link.h"

namespace artel {

struct EntranceOptions {
  std::vector<std::string> doors;  // known doors of the run's workers
  std::string token;               // token of the run
  bool encrypt = false;
  comm::control::DoorRequest request;
  double patience = 20;      // maximum silence at a door, in seconds
  double join_timeout = 60;  // seconds within which a door must answer
};

class Entrance {
 public:
  explicit Entrance(EntranceOptions options) : options_(std::move(options)) {}

  // Waits until worker 0 admits this worker. Throws if it refuses or no door answers.
  comm::control::Roster wait();
  // Throws if worker 0 has died. Call it while the group is formed.
  void check();
  // All doors of the run, as last received.
  const std::vector<std::string>& doors() const { return options_.doors; }

 private:
  enum class Answer { let_in, elsewhere, nobody };
  Answer ask_at(const std::string& door);

  EntranceOptions options_;
  comm::control::Link link_{comm::FileHandle()};
  comm::control::Roster roster_;
};

// The first of these addresses where a worker listens, or the first one if none does.
std::string first_that_answers(const std::vector<std::string>& addresses);

struct LeaveRequest {
  std::string door, token;
  bool encrypt = false;
  double patience = 20;
};
// Asks a worker to hand its lanes over after its current step, and returns when it has ended.
// Throws if it refuses, if it cannot be reached, and at the deadline.
void ask_to_leave(const LeaveRequest& request, Deadline deadline);

}  // namespace artel
