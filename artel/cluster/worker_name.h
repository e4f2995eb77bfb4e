// Names of workers in messages.
#pragma once

#include <string>
#include <vector>

#include "artel/comm/control/participant.h"
#include "artel/comm/group.h"

namespace artel {

// "worker 2 on n03", or "worker 2" if all workers of the group are on one machine.
std::string worker_name(const comm::Group& group, int rank);

// The same for a worker or server that may not be in a group. Always with its host.
std::string worker_name(const comm::control::Participant& who);

// "worker 2 on n03", "workers 0 on n01, 2 on n03".
std::string worker_names_of(const comm::Group& group, const std::vector<int>& ranks);

}  // namespace artel
