// Several workers on this machine.
#pragma once

namespace artel::cli {

// Runs this program with its own arguments once for each worker, joined through shared memory, and
// waits. Returns the exit code of the first that failed, or 0.
int launch_here(int workers);

}  // namespace artel::cli
