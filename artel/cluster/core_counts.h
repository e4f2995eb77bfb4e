// The number of cores that each worker may use. Internal to cluster.
#pragma once

#include <vector>

namespace artel {

namespace comm {
class Group;
}

// The cores of this process, within the quota of its cgroup.
int own_core_count();

// The cores of each rank, by rank: the cores of a machine, shared evenly among the workers on it.
// All ranks make this call.
std::vector<int> core_counts(comm::Group& group);

}  // namespace artel
