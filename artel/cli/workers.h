// Several workers on this machine.
#pragma once

namespace artel::cli {

// Runs this program with its own arguments once for each worker and server, joined through shared
// memory, and waits. With `outlives_workers` a worker other than the first may die without ending
// the run; with `servers_inside` servers
// have no process of their own. Returns the exit code of the first that failed, or 0.
int launch_here(int workers, int servers = 0, bool outlives_workers = false,
                bool servers_inside = false);

}  // namespace artel::cli
