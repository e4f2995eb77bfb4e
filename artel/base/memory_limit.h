// Memory limits of the process.
#pragma once

#include <cstdint>
#include <filesystem>

namespace artel {

// The smallest of the machine's memory, the process limit (setrlimit), and the cgroup limit.
uint64_t memory_limit_bytes();

// The limit of this process's cgroups, read from files below `root`; the largest number without
// one.
uint64_t control_group_limit(const std::filesystem::path& root = "/");

}  // namespace artel
