// The share of the processors that a cgroup allows this process: containers and batch systems limit
// it without hiding any core.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace artel {

// Cores, such as 0.5; nothing if there is no limit. Reads /proc/self/cgroup and /sys/fs/cgroup, in
// the layouts of both versions of cgroups.
std::optional<double> processor_quota();
// The same with the text of /proc/self/cgroup and where the cgroups are mounted.
std::optional<double> processor_quota(const std::string& memberships,
                                      const std::filesystem::path& mount);

}  // namespace artel
