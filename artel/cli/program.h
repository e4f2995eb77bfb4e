// The `artel` program: one file of this folder for each command.
#pragma once

namespace artel::cli {

// Runs a command and returns the exit code: 0; 1 for an error, of which one line
// `artel: error: ...` is written to standard error; 2 for a wrong command line.
int run(int argc, char** argv);

}  // namespace artel::cli
