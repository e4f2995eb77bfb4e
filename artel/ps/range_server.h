// The primary server of one range of keys.
//
// Workers push contributions and pull values. The server adds the contributions of an iteration,
// applies the update rule, and answers when the clock allows the worker to continue and the backup
// has the changes. One thread per worker receives. One mutex guards all state, and the thread that
// makes an answer possible sends it. A contribution is applied only when all of it has arrived, so
// a dying worker leaves no partial update. A contribution that was already applied, because a
// worker repeats a step after its group failed, is not applied again.
#pragma once

#include <memory>

#include "artel/ps/server.h"

namespace artel::ps {

class RangeServer {
 public:
  struct Place {
    int range = 0;
    int backup = -1;                   // rank of the backup server; -1 if none
    std::shared_ptr<KeptRange>& slot;  // null until the range has been set up
  };
  RangeServer(std::shared_ptr<comm::Group> group, const ServerOptions& options, const Place& place);
  ~RangeServer();

  // Serves until all workers have left. Throws when the group fails.
  void run();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace artel::ps
