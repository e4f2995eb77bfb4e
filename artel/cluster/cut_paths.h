// Finds members of a run that cannot reach each other although both reach worker 0, and decides
// which of them leave.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/base/time.h"
#include "artel/comm/connection/run_secret.h"
#include "artel/comm/control/participant.h"
#include "artel/comm/transports/transport.h"

namespace artel {

// Watches this member's paths to the doors of all others while it waits for one of them; a door
// answers twice a second. Costs nothing while `look` is not called. Thread safe.
class CutPaths {
 public:
  explicit CutPaths(comm::RunSecret secret);
  ~CutPaths();

  // Sets the members to watch. Keeps the state of members that were watched before. Ignores members
  // with a local door: a path within one machine is never cut, however slow the machine is.
  void watch(const std::vector<comm::control::Participant>& members, int own);

  // Sends probes and reads answers. Call it about ten times a second while waiting. A pause of more
  // than a second resets the state, because this process may have been stopped.
  void look();
  // Probes the peer's door. True if the peer has been alive for worker 0 for `seconds` without
  // answering the probe.
  bool is_cut(const comm::PeerStatus& peer, double seconds);
  // Members that have not answered for `seconds`. `silent` holds each member's seconds without a
  // heartbeat to worker 0; that time does not count.
  std::set<int> unanswered(double seconds, const std::map<int, double>& silent = {}) const;

 private:
  struct Line;

  const comm::RunSecret secret_;
  mutable Mutex mutex_;
  std::vector<comm::control::Participant> members_ ARTEL_GUARDED_BY(mutex_);
  std::map<int, std::unique_ptr<Line>> lines_ ARTEL_GUARDED_BY(mutex_);  // by number
  Clock::time_point looked_ ARTEL_GUARDED_BY(mutex_){};
};

// Seconds without an answer after which a path counts as cut, although worker 0 receives the
// member's heartbeats. Doors answer twice a second.
double cut_seconds(double patience);

// The members that must leave so that all others can reach each other. Repeatedly removes the
// member with the most cut paths. In a tie, workers leave before servers and higher ranks before
// lower ones. `members` are ordered by rank; the first one always stays.
std::vector<int> members_to_leave(const std::vector<comm::control::Participant>& members,
                                  std::set<std::pair<int, int>> cut);

}  // namespace artel
