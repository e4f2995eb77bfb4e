#include "artel/base/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace artel {

uint64_t memory_limit_bytes() {
  uint64_t least = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const auto what : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit = {};
    if (::getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      least = std::min<uint64_t>(least, limit.rlim_cur);
  }
  // As a container sees its own; "max" is no number.
  uint64_t group = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group && group > 0)
    least = std::min(least, group);
  return least;
}

}  // namespace artel
