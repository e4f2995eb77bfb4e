// Parameter servers as threads of worker processes.
#pragma once

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "artel/comm/options.h"

namespace artel {

// The servers of one worker, each a thread with its own rank. Create it before the worker joins,
// because all wait for each other.
class ServersInside {
 public:
  // `place` are the worker's options. Server s lives in the process of worker s % workers. Throws
  // for a transport that allows only one rank per process.
  explicit ServersInside(const comm::GroupOptions& place);
  // Waits for the servers, which end when all workers have left or the group fails.
  ~ServersInside();
  ServersInside(const ServersInside&) = delete;
  ServersInside& operator=(const ServersInside&) = delete;

 private:
  std::vector<std::thread> threads_;
};

}  // namespace artel
