// Answers the workers for one range of keys.
//
// Workers push contributions and pull values. The server adds up what belongs together, applies the
// update rule, and answers when its clock allows the worker to continue, and when the copy of the
// range has what the answer tells of. One thread per worker receives; all state is behind one
// mutex, and the thread that makes an answer possible sends it. A contribution is applied only when
// all of it has arrived, so a worker that dies leaves nothing half done; one that is in the values
// already, because a worker repeats a step after another group has broken, is not applied again.
#pragma once

#include <memory>

#include "artel/ps/server.h"

namespace artel::ps {

class RangeServer {
 public:
  struct Place {
    int range = 0;
    int backup = -1;                   // the rank of the server with the copy; -1: there is none
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
