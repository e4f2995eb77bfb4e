// Brings the members of a failed group together again. Runs an election (cluster/election.h) over
// the members' doors, without a central server.
//
// A member has ended if its door refuses connections or if it has announced that it leaves. A
// member is silent if its door has not sent anything for the patience, because the process is
// stopped or the network is cut. The door of any member tells a removed worker that the run
// continues without it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/cluster/door.h"
#include "artel/cluster/election.h"
#include "artel/cluster/membership.h"

namespace artel {

struct RegroupingOptions {
  comm::control::Participant self;
  double patience = 20;  // seconds of silence after which a member is given up
  Deadline deadline = Deadline::after(300);
  // The last heartbeat of a member in the failed group.
  struct Sign {
    double silent_seconds = 0;
    std::string phase;
  };
  std::map<int, Sign> signs = {};
  // Memberships that this worker has agreed to since the last group formed.
  std::vector<comm::control::Roster> agreed = {};
  // Newcomers at the door that may join.
  std::set<int64_t> accepted = {};
  int next_number = 0;                     // number of the next newcomer
  std::map<int, int64_t> lost_after = {};  // step after which the worker of a place was lost
  std::function<std::string()> address;    // rendezvous address of a group led by this worker
  std::set<int> unreachable = {};          // members that do not answer this one but may be alive
};

// The leader has told this worker to leave, because it cannot reach another member.
class CutOff : public Error {
 public:
  using Error::Error;
};

class Regrouping {
 public:
  // `before` is the membership of the last group that formed. Borrows the door.
  Regrouping(Door& door, const Membership& before, const RegroupingOptions& options);
  // Disconnects from the leader. Followers disconnect themselves.
  ~Regrouping();

  // Returns the next membership when this worker and, if it leads, all others have agreed to it.
  // Throws if the run continues without this worker, if there is no quorum, or CutOff.
  comm::control::Roster meet();
  // Throws if a member has died since the meeting. Call while the group is formed.
  void check();

 private:
  using Participant = comm::control::Participant;
  struct Line;

  void hear_door();
  void dismiss_cut_off(const std::vector<Door::Guest>& guests);
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
  const int64_t generation_;  // the highest known generation
  // Workers and servers of the last group, and newcomers of the memberships agreed to since.
  const std::vector<comm::control::Participant> before_;
  const RegroupingOptions options_;
  const Clock::time_point begun_ = Clock::now();
  Election election_;
  std::map<int, std::unique_ptr<Line>> lines_;  // connections to members' doors, by number
  std::map<int, int64_t> guests_;               // members at this door, by number
  std::optional<comm::control::Roster> proposal_;
  // Guests that have received the proposal, with their names.
  std::map<int64_t, std::string> informed_;
  std::map<int, std::string> cut_off_;  // members that must leave, and the reason
  std::unique_ptr<Line> leader_;
};

}  // namespace artel
