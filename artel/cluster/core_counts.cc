#include "artel/cluster/core_counts.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "artel/base/processor_quota.h"
#include "artel/comm/group.h"

namespace artel {
namespace {

// The number of whole cores that a quota allows, at least one.
int within_quota(int cores, const std::optional<double>& quota) {
  if (!quota) return std::max(1, cores);
  return std::clamp(static_cast<int>(std::lround(*quota)), 1, std::max(1, cores));
}

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

}  // namespace

int own_core_count() {
  const cpu_set_t own = own_cores();
  return within_quota(CPU_COUNT(&own), processor_quota());
}

// Launchers may bind each process to its own cores, or let all processes on a machine use all
// cores.
std::vector<int> core_counts(comm::Group& group) {
  struct Share {
    cpu_set_t cores;
    double quota;  // cgroup limit in cores, possibly shared by several processes; 0 if unlimited
  };
  const Share own = {own_cores(), processor_quota().value_or(0)};
  std::vector<Share> shares(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(shares)), {},
                   {.label = "cores"});
  const std::vector<int> hosts = group.host_numbers();
  std::vector<int> counts;
  for (size_t mine = 0; mine < shares.size(); ++mine) {
    cpu_set_t of_host;
    CPU_ZERO(&of_host);
    int sharing = 0;
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      if (hosts[rank] != hosts[mine]) continue;
      CPU_OR(&of_host, &of_host, &shares[rank].cores);
      ++sharing;
    }
    const double quota = shares[mine].quota;
    counts.push_back(within_quota(CPU_COUNT(&of_host) / sharing,
                                  quota > 0 ? std::optional(quota / sharing) : std::nullopt));
  }
  return counts;
}

}  // namespace artel
