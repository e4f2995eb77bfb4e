// Names of ranks in messages.
#pragma once

#include <string>
#include <vector>

namespace artel::comm {

// "2 on n03", or "2" if all ranks are on one host. `hosts` is the host of each rank.
std::string rank_name(const std::vector<std::string>& hosts, int rank);

}  // namespace artel::comm
