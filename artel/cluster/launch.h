// Starts the workers of a run as processes and watches over them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artel/comm/options.h"

namespace artel {

struct WorkerCommand {
  std::string name;                    // "worker 2"
  std::vector<std::string> arguments;  // the program (found on the PATH) and its arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  std::string output = {};  // the file for what it prints; empty: where ours goes
  bool expendable = false;  // the others go on when it fails
};

// Runs all commands at once and waits for them. Interrupt and termination signals are passed on.
// When one fails that is not expendable, the others are given ten seconds to notice and stop by
// themselves, then they are killed. A worker that a signal ended is reported on standard error.
// Returns the exit code of the first that failed (128 plus the signal), or 0. No worker outlives
// this process.
int supervise(const std::vector<WorkerCommand>& workers);

// This program with the arguments that it was started with.
std::vector<std::string> own_command();

// The environment that tells a worker its place (cluster/launcher.h reads it).
std::vector<std::pair<std::string, std::string>> worker_environment(
    const comm::GroupOptions& options);

// A secret that only the workers of one run know.
std::string random_token();

}  // namespace artel
