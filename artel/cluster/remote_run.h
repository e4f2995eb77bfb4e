// The launcher's side of remote workers: starts them through ssh, forwards signals, and prints
// their output line by line with the host name as a prefix.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace artel {

struct RemoteWorker {
  std::string name;                    // "worker 2 on n03"
  std::string label;                   // prefix of each output line: "n03"
  std::vector<std::string> arguments;  // ssh, the host, and the line to run there
  std::string secret;                  // the first line of its standard input
  // The arguments that start it again, so that it joins the run at these doors.
  std::function<std::vector<std::string>(const std::string& doors)> again = {};
};

// Runs all workers and waits for them. The remote end of each connection is `follow_launcher`,
// controlled through standard input. If a connection ends, its worker leaves the run.
//
// An interrupt or termination signal interrupts all workers; a second one stops them immediately.
// Workers that still run a minute after the first signal are killed. When a worker fails, the
// others are interrupted after five seconds and killed after another five. A worker whose machine
// or connection is lost, or that was killed by a signal, does not affect the others. It is started
// again up to `restarts` times, with growing pauses, once the workers have connected. Returns the
// exit code of the first worker that failed, 128 plus the signal if one was interrupted, or 0 if a
// remaining worker succeeded.
int run_remotely(const std::vector<RemoteWorker>& workers, int restarts = 0);

// The worker's side: reads the secret (ARTEL_TOKEN) from standard input, runs the command, and
// forwards the launcher's signals, the lines "INT", "TERM", and "KILL". Passes on the doors of the
// run that the command reports (cluster/launcher.h), as a marked line on standard error. Standard
// input ends when the launcher or the connection is lost. The command then receives SIGTERM and is
// killed a minute later. Returns its exit code, or 128 plus the signal that ended it.
int follow_launcher(const std::vector<std::string>& command);

}  // namespace artel
