// The CPU quota of this process's cgroup. Containers and batch systems set it without hiding any
// core.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace artel {

// The quota in cores, such as 0.5; empty without a limit. Reads /proc/self/cgroup and
// /sys/fs/cgroup; supports cgroups v1 and v2.
std::optional<double> processor_quota();
// For tests: takes the content of /proc/self/cgroup and the mount point.
std::optional<double> processor_quota(const std::string& memberships,
                                      const std::filesystem::path& mount);

}  // namespace artel
