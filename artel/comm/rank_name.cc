#include "artel/comm/rank_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace artel::comm {

std::string rank_name(const std::vector<std::string>& hosts, int rank) {
  const auto place = static_cast<size_t>(rank);
  const bool one_host =
      place >= hosts.size() || std::ranges::count(hosts, hosts.front()) == std::ssize(hosts);
  return one_host ? std::to_string(rank) : fmt::format("{} on {}", rank, hosts[place]);
}

}  // namespace artel::comm
