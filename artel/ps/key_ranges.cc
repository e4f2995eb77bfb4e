#include "artel/ps/key_ranges.h"

#include <algorithm>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

constexpr uint64_t kLine = 16;  // floats per cache line

void check_servers(int servers) {
  require(servers >= 1, ErrorKind::invalid_argument, "[ps] servers: got {}, expected at least 1",
          servers);
}

}  // namespace

KeyRange intersection(const KeyRange& a, const KeyRange& b) {
  const KeyRange both = {std::max(a.first, b.first), std::min(a.last, b.last)};
  return both.empty() ? KeyRange{both.first, both.first} : both;
}

ShardMap::ShardMap(std::vector<KeyRange> ranges) : ranges_(std::move(ranges)) {
  uint64_t next = 0;
  for (const KeyRange& range : ranges_) {
    require(range.first == next && range.last >= range.first, ErrorKind::invalid_argument,
            "[ps] shard map: got keys {} to {}, expected a range that begins at {}", range.first,
            range.last, next);
    next = range.last;
  }
  check_servers(servers());
}

ShardMap ShardMap::even(uint64_t keys, int servers) {
  check_servers(servers);
  const uint64_t lines = (keys + kLine - 1) / kLine;
  std::vector<KeyRange> ranges;
  for (int server = 0; server < servers; ++server)
    ranges.push_back({std::min(keys, lines * server / servers * kLine),
                      std::min(keys, lines * (server + 1) / servers * kLine)});
  return ShardMap(std::move(ranges));
}

ShardMap ShardMap::between(uint64_t keys, int servers, std::span<const uint64_t> allowed) {
  check_servers(servers);
  std::vector<KeyRange> ranges;
  uint64_t first = 0;
  for (int server = 1; server <= servers; ++server) {
    const uint64_t wanted = keys / servers * server;
    uint64_t cut = keys;
    // The allowed cut nearest to the even one.
    const auto above = std::lower_bound(allowed.begin(), allowed.end(), wanted);
    if (server < servers) {
      if (above != allowed.end()) cut = *above;
      if (above != allowed.begin() && wanted - *(above - 1) < cut - wanted) cut = *(above - 1);
    }
    cut = std::clamp(cut, first, keys);
    ranges.push_back({first, cut});
    first = cut;
  }
  return ShardMap(std::move(ranges));
}

int ShardMap::server_of(uint64_t key) const {
  const auto found = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [&](const KeyRange& range) { return range.last <= key; });
  require(found != ranges_.end(), ErrorKind::invalid_argument,
          "[ps] key: got {}, expected less than {}", key, keys());
  return static_cast<int>(found - ranges_.begin());
}

}  // namespace artel::ps
