// Runs other programs, and measures the resources of this process.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/base/time.h"

namespace artel {

struct ProcessResult {
  int exit_code = 0;   // 128 + the signal number if it was killed
  std::string output;  // the last 64 KiB of standard output and standard error
};

// True if a program of this name is on the PATH.
bool program_exists(const std::string& name);

// Runs a program (found on the PATH, without a shell) in a folder and waits for it. Calls `on_tick`
// about ten times a second. When the deadline passes, kills the program and throws an Error of kind
// timeout. Throws an Error of kind not_found if it cannot be started.
ProcessResult run_program(const std::vector<std::string>& arguments,
                          const std::filesystem::path& folder, Deadline deadline,
                          const std::function<void()>& on_tick = {});

// Processor time of all threads of this process so far, and its resident memory now.
double processor_seconds();
int64_t memory_bytes();
// Resident memory without mapped files, which the system can drop. Releases free heap memory first.
int64_t private_memory_bytes();
// Peak resident memory of this process.
int64_t peak_memory_bytes();

}  // namespace artel
