// The launcher's side of workers on other machines: starts them through ssh, passes signals on, and
// prints their output line by line with the name of the machine in front.
#pragma once

#include <string>
#include <vector>

namespace artel {

struct RemoteWorker {
  std::string name;                    // "worker 2 on n03"
  std::string label;                   // in front of each line of its output: "n03"
  std::vector<std::string> arguments;  // ssh, the host, and the line to run there
  std::string secret;                  // the first line of its standard input
};

// Runs all workers and waits for them. The other end of each connection is `follow_launcher`, so
// this process controls it through standard input, and a connection that ends makes the worker
// leave the run.
//
// An interrupt or termination signal interrupts all workers, and a second one does so again, which
// ends them at once. Workers that still run a minute after the first are killed. When a worker
// fails, the others have ten seconds to notice, then they are interrupted, and killed ten seconds
// later. A worker whose machine or connection is lost, or that a signal ends, leaves the others
// alone. Returns the exit code of the first worker that failed, 128 plus the signal if one of
// them was interrupted, or 0 if one that was left has ended well.
int run_remotely(const std::vector<RemoteWorker>& workers);

// The worker's side: reads the secret (ARTEL_TOKEN) from standard input, runs the command, and
// obeys the launcher: "INT", "TERM" and "KILL", a line each. The end of standard input means that
// the launcher or the connection is gone: the command gets a termination signal, and a minute later
// it is killed. Returns its exit code, or 128 plus the signal that ended it.
int follow_launcher(const std::vector<std::string>& command);

}  // namespace artel
