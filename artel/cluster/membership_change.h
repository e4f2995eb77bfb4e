// The difference between two memberships.
//
//   const artel::MembershipChange change = artel::change_between({}, {}, {});
//   for (const auto& [worker, why] : change.gone) artel::println("{} {}", worker.number, why);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artel/base/error.h"
#include "artel/comm/control/participant.h"

namespace artel {

// How one membership followed another.
struct MembershipChange {
  struct Gone {
    comm::control::Participant worker;
    std::string why;  // "ended", "left", "did not answer for 20 s, last seen in step 7"
  };
  std::vector<Gone> gone = {};
  std::vector<comm::control::Participant> came = {};
  std::vector<Gone> missed = {};  // newcomers that were admitted but lost before they took part
  bool rejoined = false;          // this worker had been given up and has rejoined as a newcomer
  double seconds = 0;             // duration of the election

  bool empty() const { return gone.empty() && came.empty() && missed.empty(); }
};

// Events between two memberships.
struct MembershipEvents {
  std::map<int, std::string> reasons;                // why each worker left or came, by its number
  std::vector<comm::control::Participant> admitted;  // newcomers, also those that were lost again
};

// The change from the members `before` to the members `now`.
MembershipChange change_between(const std::vector<comm::control::Participant>& before,
                                const std::vector<comm::control::Participant>& now,
                                const MembershipEvents& events);

// Logs a line for each worker that has left or joined, or the cause if the members are the same.
// `rest` ends each line: "continuing with 3 workers".
void log_change(const MembershipChange& change, const Error& cause, const std::string& rest);

// Fails because the last parameter server is gone, and names the servers that were lost.
[[noreturn]] void fail_without_servers(const MembershipChange& change);

}  // namespace artel
