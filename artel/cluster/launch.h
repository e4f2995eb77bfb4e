// Starts the worker processes of a run and supervises them.
#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artel/comm/options.h"

namespace artel {

struct WorkerCommand {
  std::string name;                    // "worker 2"
  std::vector<std::string> arguments;  // the program (found on the PATH) and its arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  // additional variables
  std::string output = {};  // output file; empty to inherit standard output and error
  // Content of standard input, at most a few KiB; without it, standard input is inherited.
  std::optional<std::string> input = {};
  bool expendable = false;  // the other commands continue if this one fails
  // Runs in the forked process instead of a program. Returns the exit code.
  std::function<int()> body = {};
};

struct SuperviseOptions {
  // How often each command is restarted after a signal has killed it, with growing pauses. Requires
  // that all commands are expendable and that another one is still running, which the restarted
  // command joins (kDoorsVariable).
  int restarts = 0;
  // Forks this process. Tests replace it.
  std::function<pid_t()> fork = ::fork;
};

// The pause in seconds before the next start of a command that was started `starts` times.
double restart_pause(int starts);

// Runs all commands at once and waits for them. Forwards SIGINT and SIGTERM. No worker outlives
// this process. Reports workers killed by a signal on standard error.
//
// - If a command that is not expendable fails, the others have ten seconds to stop. Then they are
//   killed.
// - If all commands are expendable, a worker killed by a signal does not affect the others. When a
//   worker ends in any other way, the others have ten seconds to end, too. Then they are killed.
//   SIGTERM is forwarded as SIGINT, because SIGTERM makes a worker leave the run.
// - If an expendable worker is killed before the workers have connected, all are killed and started
//   again, at most twice.
//
// Returns the exit code of the first failure that ended the run (128 plus the signal). Otherwise
// returns 0 if a worker succeeded, or else the last exit code.
int supervise(const std::vector<WorkerCommand>& workers, const SuperviseOptions& options = {});

// Sets the words that start this program, such as {"python3", "-m", "artel"}, and the arguments of
// this process. For programs that embed this one. Call before any other thread runs.
void set_own_command(std::vector<std::string> program, std::vector<std::string> arguments);
// The command line of this process. By default, it begins with the path of the program.
std::vector<std::string> own_command();
// The command line with other arguments.
std::vector<std::string> own_command_with(const std::vector<std::string>& arguments);

// The environment variables that assign a worker its rank. Read by cluster/launcher.h.
std::vector<std::pair<std::string, std::string>> worker_environment(
    const comm::GroupOptions& options);

}  // namespace artel
