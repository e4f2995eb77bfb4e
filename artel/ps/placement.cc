#include "artel/ps/placement.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::ps {
namespace {

using Json = nlohmann::json;

const Holding* find_range(const std::vector<Holding>& held, int range) {
  const auto found = std::find_if(held.begin(), held.end(),
                                  [&](const Holding& each) { return each.range == range; });
  return found == held.end() ? nullptr : &*found;
}

// The least loaded server for which `may` is true, or -1.
template <typename May>
int least_busy(const std::vector<int>& work, May&& may) {
  int best = -1;
  for (int server = 0; server < std::ssize(work); ++server)
    if (may(server) && (best < 0 || work[server] < work[best])) best = server;
  return best;
}

// Calls read(list) for each list in a list of lists.
template <typename Read>
void read_lists(std::string_view text, Read&& read) {
  try {
    for (const Json& item : parse_json(text, "ps placement")) read(item);
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[ps] placement: not readable: {}", error.what());
  }
}

}  // namespace

std::vector<Placement> place_ranges(int ranges, const std::vector<std::vector<Holding>>& held,
                                    int replicas) {
  const int servers = static_cast<int>(held.size());
  require(servers >= 1, ErrorKind::cancelled,
          "[ps] no server is left; resume the run from its last checkpoint");
  const bool begun = std::any_of(held.begin(), held.end(), [](const auto& of_server) {
    return std::any_of(of_server.begin(), of_server.end(),
                       [](const Holding& each) { return each.begun; });
  });
  const int fair = (ranges + servers - 1) / servers;
  std::vector<int> answering(held.size()), copying(held.size());
  std::vector<Placement> places;
  for (int range = 0; range < ranges; ++range) {
    Placement& place = places.emplace_back();
    uint64_t most = 0;
    for (int server = 0; begun && server < servers; ++server)
      if (const Holding* here = find_range(held[server], range))
        if (place.source < 0 || here->changes > most) {
          place.source = server;
          place.latest = here->latest;
          most = here->changes;
        }
    require(!begun || place.source >= 0, ErrorKind::cancelled,
            "[ps] all servers that kept part {} of {} of the weights are gone; resume the run from "
            "its last checkpoint (cluster.replicas = 2 keeps each part twice)",
            range + 1, ranges);
    const auto has_it = [&](int server) {
      const Holding* const here = begun ? find_range(held[server], range) : nullptr;
      return here && here->changes == most;
    };
    const auto choose = [&](std::vector<int>& work, int other) {
      int chosen = least_busy(work, [&](int server) {
        return server != other && has_it(server) && work[server] < fair;
      });
      if (chosen < 0) chosen = least_busy(work, [&](int server) { return server != other; });
      if (chosen < 0) return chosen;
      ++work[chosen];
      if (begun && !has_it(chosen)) place.copies.push_back(chosen);
      return chosen;
    };
    place.primary = choose(answering, -1);
    if (replicas > 1) place.backup = choose(copying, place.primary);
  }
  return places;
}

std::string to_text(const std::vector<Holding>& held) {
  Json lists = Json::array();
  for (const Holding& each : held)
    lists.push_back({each.range, each.changes, each.begun, each.latest});
  return lists.dump();
}

std::string to_text(const std::vector<Placement>& places) {
  Json lists = Json::array();
  for (const Placement& each : places)
    lists.push_back({each.primary, each.backup, each.source, each.copies, each.latest});
  return lists.dump();
}

std::vector<Holding> holdings_from_text(std::string_view text) {
  std::vector<Holding> held;
  read_lists(text, [&](const Json& item) {
    held.push_back({item.at(0), item.at(1), item.at(2), item.at(3)});
  });
  return held;
}

std::vector<Placement> placements_from_text(std::string_view text) {
  std::vector<Placement> places;
  read_lists(text, [&](const Json& item) {
    places.push_back({item.at(0), item.at(1), item.at(2), item.at(3), item.at(4)});
  });
  return places;
}

}  // namespace artel::ps
