// Several workers on this machine.
#pragma once

#include <functional>
#include <string>

#include "artel/cluster/launch.h"
#include "artel/run/config/config.h"

namespace artel::cli {

struct LocalRun {
  int workers = 1;
  int servers = 0;
  bool outlives_workers = false;  // a worker other than the first may die without ending the run
  bool elastic = false;           // any worker may
  int restarts = 0;               // of each worker that has died, if any may
  bool servers_inside = false;    // servers are threads of the workers
  std::string transport = "auto";
  // If set, copies of this process made by `fork` run `body`, instead of this program with its own
  // arguments.
  std::function<int()> body = {};
  std::function<pid_t()> fork = ::fork;
};

// The workers and servers that a configuration asks for.
LocalRun local_run(const RunConfig& config);

// Runs this program with its own arguments once per worker and server, connected through shared
// memory unless the transport is configured, and waits. Returns the first nonzero exit code, or 0.
int launch_here(const LocalRun& run);

}  // namespace artel::cli
