// A parameter server: a process that holds a part of the parameters for all workers of a run.
//
// Workers push contributions and pull values. The server adds up what belongs together, applies the
// update rule, and answers when its clock allows the worker to go on. It knows nothing of models or
// data: worker 0 tells it what to serve. One thread for each worker receives; all state is behind
// one mutex, and answers are sent by whoever made them possible. A contribution is applied when all
// of it has arrived, so a worker that dies leaves nothing half done.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "artel/comm/group.h"
#include "artel/ps/rules/rule.h"

namespace artel::ps {

struct ServerOptions {
  int workers = 1;  // ranks 0 to workers-1; the ranks behind them are the servers, in order
  UserRules rules = {};
  // Says what people should know, such as the loss of a worker; default: a warning in the log.
  std::function<void(const std::string&)> note = {};
};

class Server {
 public:
  // The group is borrowed.
  Server(comm::Group& group, ServerOptions options);
  ~Server();

  // Serves until all workers have left. Throws when the group fails. A worker that disappears from
  // a group that goes on (GroupOptions::outlives_workers) is left behind.
  void run();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace artel::ps
