// The `artel` program: one file of this folder for each command.
#pragma once

namespace artel::cli {

// Runs a command and returns the exit code: 0 for success; 1 for an error, reported as one line
// `artel: error: ...` on standard error; 2 for an invalid command line.
int run(int argc, char** argv);

}  // namespace artel::cli
