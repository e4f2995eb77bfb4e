// How a newcomer is let into a run that is under way: it knocks at the door of worker 0, waits
// there for the end of a step, and is told of the membership that it is part of.
#pragma once

#include <string>
#include <vector>

#include "artel/comm/control/link.h"

namespace artel {

struct EntranceOptions {
  std::vector<std::string> doors;  // of workers of the run, as far as they are known
  std::string token;               // of the run
  bool encrypt = false;
  comm::control::Knock knock;
  double patience = 20;      // seconds of silence at a door
  double join_timeout = 60;  // seconds in which some door must open
};

class Entrance {
 public:
  explicit Entrance(EntranceOptions options) : options_(std::move(options)) {}

  // Returns when worker 0 has let this one in. Throws if it refuses to, and if nobody is there.
  comm::control::Roster wait();
  // While the group is formed: throws if worker 0 has died since.
  void check();
  // All doors of the run, as last told.
  const std::vector<std::string>& doors() const { return options_.doors; }

 private:
  enum class Answer { let_in, elsewhere, nobody };
  Answer knock_at(const std::string& door);

  EntranceOptions options_;
  comm::control::Link link_{comm::FileHandle()};
  comm::control::Roster roster_;
};

// The first of these addresses where a worker listens, or the first of all: there a run begins.
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
