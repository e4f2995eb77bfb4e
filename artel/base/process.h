// Running other programs, and what this one takes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/base/time.h"

namespace artel {

struct ProcessResult {
  int exit_code = 0;   // 128 + the signal if one ended it
  std::string output;  // standard output and standard error, at most the last 64 KiB
};

// Whether a program of this name is on the PATH.
bool program_exists(const std::string& name);

// Runs a program (found on the PATH, without a shell) in a folder and waits for it. `on_tick` is
// called about ten times a second. Throws an Error of kind timeout after killing it when the
// deadline passes, and of kind not_found if it cannot be started.
ProcessResult run_program(const std::vector<std::string>& arguments,
                          const std::filesystem::path& folder, Deadline deadline,
                          const std::function<void()>& on_tick = {});

// The processor time of all threads of this process so far, and the memory that it has now.
double processor_seconds();
int64_t memory_bytes();
// The most memory that this process has had at a time.
int64_t peak_memory_bytes();

}  // namespace artel
