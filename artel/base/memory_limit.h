// How much memory a process may have.
#pragma once

#include <cstdint>

namespace artel {

// That of the machine, or less if a limit of the process (setrlimit) or of its group of processes
// (cgroup) says so.
uint64_t memory_limit_bytes();

}  // namespace artel
