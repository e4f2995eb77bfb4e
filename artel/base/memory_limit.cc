#include "artel/base/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace artel {
namespace {

// Lowers `limit` to the number in a file. Ignores "max" and missing files.
void lower_to(uint64_t& least, const std::filesystem::path& file) {
  uint64_t limit = 0;
  if (std::ifstream(file) >> limit && limit > 0) least = std::min(least, limit);
}

}  // namespace

uint64_t control_group_limit(const std::filesystem::path& root) {
  uint64_t least = UINT64_MAX;
  const std::filesystem::path mounted = root / "sys/fs/cgroup";
  // The cgroup as mounted inside a container.
  lower_to(least, mounted / "memory.max");
  // A line is "7:memory:/slurm/job" (cgroups v1) or "0::/slurm/job" (v2). Parent groups limit, too.
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string kind = line.substr(first + 1, second - first - 1);
    if (!kind.empty() && kind != "memory") continue;
    const std::filesystem::path above = kind.empty() ? mounted : mounted / kind;
    for (std::filesystem::path group = line.substr(second + 1); group.has_relative_path();
         group = group.parent_path())
      lower_to(least, above / group.relative_path() /
                          (kind.empty() ? "memory.max" : "memory.limit_in_bytes"));
  }
  return least;
}

uint64_t memory_limit_bytes() {
  uint64_t least = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const auto what : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit = {};
    if (::getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      least = std::min<uint64_t>(least, limit.rlim_cur);
  }
  return std::min(least, control_group_limit());
}

}  // namespace artel
