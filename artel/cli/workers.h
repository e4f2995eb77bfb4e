// Several workers on this machine.
#pragma once

#include <string>

namespace artel::cli {

struct LocalRun {
  int workers = 1;
  int servers = 0;
  bool outlives_workers = false;  // a worker other than the first may die without ending the run
  bool elastic = false;           // any worker may
  int restarts = 0;               // of each worker that has died, if any may
  bool servers_inside = false;    // servers are threads of the workers
  std::string transport = "auto";
};

// Runs this program with its own arguments once per worker and server, connected through shared
// memory unless the transport says otherwise, and waits. Returns the exit code of the first that
// failed, or 0.
int launch_here(const LocalRun& run);

}  // namespace artel::cli
