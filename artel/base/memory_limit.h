// How much memory a process may have.
#pragma once

#include <cstdint>
#include <filesystem>

namespace artel {

// That of the machine, or less if a limit of the process (setrlimit) or of its group of processes
// (cgroup) says so.
uint64_t memory_limit_bytes();

// What the control groups of this process allow, as the files below `root` say; without a limit,
// the largest number.
uint64_t control_group_limit(const std::filesystem::path& root = "/");

}  // namespace artel
