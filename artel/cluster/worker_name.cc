#include "artel/cluster/worker_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/text.h"

namespace artel {
namespace {

// "2 on n03", or "2".
std::string number_and_host(const std::vector<std::string>& hosts, int rank) {
  const bool one_host = std::ranges::count(hosts, hosts.front()) == std::ssize(hosts);
  return one_host ? std::to_string(rank) : fmt::format("{} on {}", rank, hosts[rank]);
}

}  // namespace

std::string worker_name(const comm::Group& group, int rank) {
  return "worker " + number_and_host(group.hosts(), rank);
}

std::string worker_names_of(const comm::Group& group, const std::vector<int>& ranks) {
  const std::vector<std::string> hosts = group.hosts();
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(number_and_host(hosts, rank));
  return (ranks.size() == 1 ? "worker " : "workers ") + join(names, ", ");
}

}  // namespace artel
