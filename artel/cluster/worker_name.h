// Names of workers in messages.
#pragma once

#include <string>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

// "worker 2 on n03", or "worker 2" if all workers of the group are on one machine.
std::string worker_name(const comm::Group& group, int rank);

// "worker 2 on n03", "workers 0 on n01, 2 on n03".
std::string worker_names_of(const comm::Group& group, const std::vector<int>& ranks);

}  // namespace artel
