// Starts the workers of a run as processes and supervises them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artel/comm/options.h"

namespace artel {

struct WorkerCommand {
  std::string name;                    // "worker 2"
  std::vector<std::string> arguments;  // the program (found on the PATH) and its arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  std::string output = {};  // the file for its output; empty: where ours goes
  // What it reads from its standard input, at most a few KiB; nothing: ours.
  std::optional<std::string> input = {};
  bool expendable = false;  // the others continue if it fails
};

struct SuperviseOptions {
  // How often each command is started again after a signal has ended it, if all are expendable and
  // some of the others live on: after pauses that grow. It joins the others (kDoorsVariable).
  int restarts = 0;
};

// Runs all commands at once and waits for them. Interrupt and termination signals are passed on; to
// commands that are all expendable both arrive as an interrupt, because a termination signal would
// make each of them leave the others.
// When a process that is not expendable fails, the others have ten seconds to notice and stop by
// themselves, then they are killed. If all are expendable, only their being ended by a
// signal leaves the others alone: otherwise all end together, and ten seconds after the first of
// them what still runs is killed. If one is ended before they have met, all are killed and started
// again, at most twice. A worker ended by a signal is reported on standard error. Returns
// the exit code of the first that failed and did not leave the others alone (128 plus the signal),
// or 0 if one of the others has ended well. No worker outlives this process.
int supervise(const std::vector<WorkerCommand>& workers, const SuperviseOptions& options = {});

// This program with the arguments it was started with.
std::vector<std::string> own_command();

// The environment that tells a worker its place (cluster/launcher.h reads it).
std::vector<std::pair<std::string, std::string>> worker_environment(
    const comm::GroupOptions& options);

}  // namespace artel
