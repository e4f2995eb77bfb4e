// A parameter server: a process that holds a part of the parameters for all workers of a run.
//
// It holds ranges of keys (ps/kept_range.h). It is the primary of some (ps/range_server.h) and the
// backup of others (ps/backup.h). Worker 0 queries its holdings and assigns its ranges. A server
// does not depend on models or data. It is created for a membership; its holdings outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "artel/comm/group.h"
#include "artel/ps/kept_range.h"
#include "artel/ps/placement.h"
#include "artel/ps/rules/rule.h"

namespace artel::ps {

struct ServerOptions {
  int workers = 1;  // ranks 0 to workers-1; the following ranks are servers, in order
  UserRules rules = {};
  // Called for events such as the loss of a worker. By default, logs a warning.
  std::function<void(const std::string&)> note = {};
  // Called from any thread with the staleness of each push that completes an iteration.
  std::function<void(int64_t staleness)> on_push = {};
};

class Server {
 public:
  // `kept` are the holdings of the previous membership. They are borrowed, and up to date when
  // `run` returns or throws. Null if this is the only membership.
  Server(std::shared_ptr<comm::Group> group, ServerOptions options, Holdings* kept = nullptr);

  // Serves until all workers have left. Throws when the group fails. If the group outlives its
  // workers (GroupOptions::outlives_workers), it continues without a worker that disappears.
  void run();

 private:
  std::vector<Placement> take_places();
  void copy_ranges(const std::vector<Placement>& places);
  int own() const { return group_->rank() - options_.workers; }

  std::shared_ptr<comm::Group> group_;
  ServerOptions options_;
  Holdings only_here_;
  Holdings& holdings_;
};

}  // namespace artel::ps
