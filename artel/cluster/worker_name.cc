#include "artel/cluster/worker_name.h"

#include <fmt/format.h>

#include "artel/base/text.h"
#include "artel/comm/rank_name.h"

namespace artel {
std::string worker_name(const comm::Group& group, int rank) {
  return "worker " + comm::rank_name(group.hosts(), rank);
}

std::string worker_name(const comm::control::Participant& who) {
  return fmt::format("{} on {}", name_of(who), who.host);
}

std::string worker_names_of(const comm::Group& group, const std::vector<int>& ranks) {
  const std::vector<std::string> hosts = group.hosts();
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(comm::rank_name(hosts, rank));
  return (ranks.size() == 1 ? "worker " : "workers ") + join(names, ", ");
}

}  // namespace artel
