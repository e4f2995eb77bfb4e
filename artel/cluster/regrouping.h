// How the members of a broken group find each other, without a launcher or server that decides for
// them: runs an election (cluster/election.h) over the members' doors.
//
// A member has ended if its door refuses connections, or if it has said that it leaves. It is
// silent if its door has not spoken for the patience: it is stopped, or its wire is cut. A worker
// that the others have given up learns so at any door.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "artel/base/time.h"
#include "artel/cluster/door.h"
#include "artel/cluster/election.h"
#include "artel/cluster/membership.h"

namespace artel {

struct RegroupingOptions {
  comm::control::Participant self;
  double patience = 20;  // seconds of silence
  Deadline deadline = Deadline::after(300);
  // What the broken group knew of its members.
  struct Sign {
    double silent_seconds = 0;
    std::string phase;
  };
  std::map<int, Sign> signs = {};
  // Memberships that this worker has agreed to since the last group was formed.
  std::vector<comm::control::Roster> agreed = {};
  // Of the newcomers at the door: those who may enter.
  std::set<int64_t> accepted = {};
  int next_number = 0;                     // for the next newcomer
  std::map<int, int64_t> lost_after = {};  // by place: the step after which its worker was lost
  std::function<std::string()> address;    // where a group that this worker leads can meet
};

class Regrouping {
 public:
  // `before`: the membership of the last group that was formed. The door is borrowed.
  Regrouping(Door& door, const Membership& before, const RegroupingOptions& options);
  // Hangs up on the leader. Those whom this worker has led hang up themselves.
  ~Regrouping();

  // Returns when this worker and, if it leads, all others have agreed to the next membership.
  // Throws if the run continues without this worker, or if too few of the others can be reached.
  comm::control::Roster meet();
  // While its group is formed: throws if one of those who met has died since.
  void check();

 private:
  using Participant = comm::control::Participant;
  struct Line;

  void hear_door();
  void hear(Line& line);
  void hear_frame(Line& line, const comm::control::Frame& frame);
  void perform(const Election::Action& action);
  void propose();
  comm::control::Roster next_membership() const;
  std::vector<Door::Guest> newcomers();
  std::string reason(const Participant& member) const;
  double patience_with(const Line& line) const;
  [[noreturn]] void stop_apart() const;

  Door& door_;
  const int64_t generation_;                              // the highest that this worker knows
  const std::vector<comm::control::Participant> before_;  // workers and servers
  const RegroupingOptions options_;
  Election election_;
  std::map<int, std::unique_ptr<Line>> lines_;  // to the doors of members, by number
  std::map<int, int64_t> guests_;               // members at this door, by number
  std::optional<comm::control::Roster> proposal_;
  std::set<int64_t> told_;  // guests who know the proposal
  std::unique_ptr<Line> leader_;
};

}  // namespace artel
