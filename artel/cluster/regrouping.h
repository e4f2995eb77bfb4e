// How the workers that are left of a broken group find each other, without anybody who decides for
// all: no launcher, no server.
//
// Everybody knocks at the door of the lowest rank that still lives; that one leads. It waits until
// each of the others has knocked or is known to be gone, and tells all who is in the next
// membership and where its group meets. A worker is gone if its door refuses connections (its
// process has ended), or if its door has been silent for the patience (it is stopped, or its wire
// is cut).
//
// Whoever has been told of the next membership belongs to it, even if its group is never formed
// because somebody else is lost meanwhile: then its members meet again. A number tells later
// memberships from earlier ones, so a worker that the others have given up learns so at any door.
//
// Of those who are not known to have ended, more than half must be there, or half of them with the
// lowest rank: so a cut wire never leaves two halves that both go on.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "artel/base/time.h"
#include "artel/cluster/door.h"
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
  // Of the newcomers at the door: those who may enter.
  std::set<int64_t> accepted = {};
  int next_number = 0;                     // for the next newcomer
  std::map<int, int64_t> lost_after = {};  // by place: the step after which its worker was lost
  std::function<std::string()> address;    // where a group that this worker leads can meet
};

class Regrouping {
 public:
  // The door is borrowed.
  Regrouping(Door& door, const Membership& before, const RegroupingOptions& options);
  // Hangs up on the leader. Those whom this worker has led hang up themselves.
  ~Regrouping();

  // Returns when all know the next membership. Throws if the run goes on without this worker, or if
  // too few of the others can be reached.
  comm::control::Roster meet();
  // While its group is formed: throws if one of those who met has died since.
  void check();

 private:
  using Participant = comm::control::Participant;
  struct Peer;

  std::optional<comm::control::Roster> follow(const Participant& leader);
  comm::control::Roster lead();
  std::optional<Peer> call(const Participant& peer, comm::control::Knock::Wish wish);
  void listen_to(Peer& peer, const std::function<void(const comm::control::Frame&)>& handle);
  comm::control::Roster next_membership(const std::vector<Door::Guest>& guests);
  std::vector<Door::Guest> newcomers();
  std::string reason(const Participant& member);
  double patience_with(const Participant& peer) const;
  bool lost(const Participant& peer) const;

  Door& door_;
  const int64_t generation_;                              // that was
  const std::vector<comm::control::Participant> before_;  // its workers and servers
  const RegroupingOptions options_;
  std::set<int> ended_, silent_;  // numbers of workers
  std::set<int64_t> told_;        // guests who know the next membership
  std::unique_ptr<Peer> leader_;
};

}  // namespace artel
