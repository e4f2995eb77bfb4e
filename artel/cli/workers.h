// Several workers on this machine.
#pragma once

#include <string>

namespace artel::cli {

struct LocalRun {
  int workers = 1;
  int servers = 0;
  bool outlives_workers = false;  // a worker other than the first may die without ending the run
  bool servers_inside = false;    // servers have no process of their own
  std::string transport = "auto";
};

// Runs this program with its own arguments once for each worker and server, joined through shared
// memory unless the transport says otherwise, and waits. Returns the exit code of the first that
// failed, or 0.
int launch_here(const LocalRun& run);

}  // namespace artel::cli
