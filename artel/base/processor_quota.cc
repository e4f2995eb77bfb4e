#include "artel/base/processor_quota.h"

#include <algorithm>
#include <fstream>

#include "artel/base/file.h"
#include "artel/base/text.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// The first two numbers of a file. "max" and unreadable files mean no limit.
std::optional<double> ratio_in(const fs::path& quota_file, const fs::path& period_file) {
  double quota = 0, period = 0;
  std::ifstream quotas(quota_file);
  if (!(quotas >> quota) || quota <= 0) return {};
  if (period_file == quota_file) {
    if (!(quotas >> period)) return {};
  } else if (std::ifstream periods(period_file); !(periods >> period)) {
    return {};
  }
  return period > 0 ? std::optional(quota / period) : std::nullopt;
}

std::optional<double> quota_at(const fs::path& group) {
  const fs::path both = group / "cpu.max";  // version 2
  if (const auto found = ratio_in(both, both)) return found;
  return ratio_in(group / "cpu.cfs_quota_us", group / "cpu.cfs_period_us");
}

}  // namespace

std::optional<double> processor_quota(const std::string& memberships, const fs::path& mount) {
  std::optional<double> least;
  // Lines such as "0::/user.slice" and "4:cpu,cpuacct:/jobs/7". Each level may have a limit.
  for (const std::string& line : split(memberships, '\n')) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() < 3) continue;
    const std::vector<std::string> controllers = split(fields[1], ',');
    if (!fields[1].empty() && std::ranges::count(controllers, std::string("cpu")) == 0) continue;
    const fs::path path = fs::path(fields[2]).relative_path();
    for (const fs::path& root : {mount, mount / "unified", mount / fields[1], mount / "cpu"})
      for (fs::path group = path;; group = group.parent_path()) {
        if (const auto found = quota_at(root / group))
          least = std::min(least.value_or(*found), *found);
        if (group.empty()) break;
      }
  }
  return least;
}

std::optional<double> processor_quota() {
  try {
    return processor_quota(read_file("/proc/self/cgroup"), "/sys/fs/cgroup");
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace artel
