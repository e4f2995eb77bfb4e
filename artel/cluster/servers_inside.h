// Parameter servers that live inside of worker processes: no process of their own is needed.
#pragma once

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "artel/comm/options.h"

namespace artel {

// The servers of one worker, each a thread that is a rank of its own. Make it before the worker
// joins: all wait for each other.
class ServersInside {
 public:
  // `place` is the worker's. Server s of all lives in the process of worker s % workers. Throws for
  // a transport that gives a process one rank only.
  explicit ServersInside(const comm::GroupOptions& place);
  // Waits for the servers, which end when all workers have left or the group fails.
  ~ServersInside();
  ServersInside(const ServersInside&) = delete;
  ServersInside& operator=(const ServersInside&) = delete;

 private:
  std::vector<std::thread> threads_;
};

}  // namespace artel
