// A parameter server: a process that holds a part of the parameters for all workers of a run.
//
// It keeps ranges of keys (ps/kept_range.h): for some of them it answers the workers
// (ps/range_server.h), of others it has the copy (ps/backup.h). Worker 0 asks what it has and says
// what it is to keep; it knows nothing about models or data. It is made for a membership; what it
// keeps outlives it.
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
  int workers = 1;  // ranks 0 to workers-1; the ranks after them are the servers, in order
  UserRules rules = {};
  // Reports events such as the loss of a worker; default: a warning in the log.
  std::function<void(const std::string&)> note = {};
  // Called with the staleness of each push that ends an iteration; from any thread.
  std::function<void(int64_t staleness)> on_push = {};
};

class Server {
 public:
  // `kept`: what it kept in the membership before; borrowed, and up to date when `run` ends,
  // however it does. Null: nothing, and there will be no other membership.
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
