#include "artel/comm/collectives/host_lanes.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace artel::comm {
namespace {

// The hosts, numbered in the order of their first ranks.
std::vector<int> renumbered(std::span<const int> hosts) {
  std::vector<int> known, numbers;
  for (const int host : hosts) {
    auto found = std::find(known.begin(), known.end(), host);
    if (found == known.end()) found = known.insert(known.end(), host);
    numbers.push_back(static_cast<int>(found - known.begin()));
  }
  return numbers;
}

// The maximal subtrees of [0, lanes) whose lanes all have the same owner, from left to right.
void collect_owned(LaneRange node, std::span<const int> owners, std::vector<LaneRange>& found) {
  const auto first = owners.begin() + node.first, last = owners.begin() + node.last;
  if (std::all_of(first, last, [&](int owner) { return owner == *first; })) {
    found.push_back(node);
    return;
  }
  const int middle = lane_split(node);
  collect_owned({node.first, middle}, owners, found);
  collect_owned({middle, node.last}, owners, found);
}

}  // namespace

HostLanes::HostLanes(int lanes, std::span<const LaneRange> ranges, std::span<const int> hosts)
    : host_of_(renumbered(hosts)), tree_(lanes, collect(lanes, ranges)) {
  ranks_.resize(static_cast<size_t>(*std::max_element(host_of_.begin(), host_of_.end()) + 1));
  for (size_t rank = 0; rank < host_of_.size(); ++rank)
    ranks_[static_cast<size_t>(host_of_[rank])].push_back(static_cast<int>(rank));
  stripes_ = static_cast<int>(ranks_.front().size());
  for (const auto& ranks : ranks_) stripes_ = std::min(stripes_, static_cast<int>(ranks.size()));
  sums_.resize(ranks_.size());
  for (size_t i = 0; i < holders_.size(); ++i) {
    const LaneRange node = tree_.nodes()[i];
    std::vector<Sum::Part> parts;
    std::vector<LaneRange> nodes;
    for (const int rank : ranks_[static_cast<size_t>(holders_[i])]) {
      const auto held = lane_subtrees(lanes, ranges[static_cast<size_t>(rank)]);
      for (size_t index = 0; index < held.size(); ++index) {
        if (held[index].first < node.first || held[index].last > node.last) continue;
        parts.push_back({rank, index});
        // A subtree has the shape of a tree of its own size, because it is complete or the last.
        nodes.push_back({held[index].first - node.first, held[index].last - node.first});
      }
    }
    sums_[static_cast<size_t>(holders_[i])].push_back(
        {std::move(parts), LaneTree(node.size(), std::move(nodes))});
  }
}

std::vector<LaneRange> HostLanes::collect(int lanes, std::span<const LaneRange> ranges) {
  std::vector<int> owners;
  for (size_t rank = 0; rank < ranges.size(); ++rank)
    owners.insert(owners.end(), static_cast<size_t>(ranges[rank].size()), host_of_[rank]);
  std::vector<LaneRange> nodes;
  collect_owned({0, lanes}, owners, nodes);
  for (const LaneRange& node : nodes) holders_.push_back(owners[static_cast<size_t>(node.first)]);
  return nodes;
}

int HostLanes::stripe_of(int rank) const {
  const std::vector<int>& ranks = this->ranks(host_of(rank));
  const auto place = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  return place < stripes_ ? place : -1;
}

LaneLayout lanes_by_host(std::span<const int> hosts) {
  std::vector<int> ranks;  // of each run of neighbours
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (i == 0 || hosts[i] != hosts[i - 1]) ranks.push_back(0);
    ++ranks.back();
  }
  const auto most = static_cast<unsigned>(std::ranges::max(ranks));
  const auto block = static_cast<int>(std::bit_ceil(most));
  LaneLayout layout{static_cast<int>(ranks.size()) * block, {}};
  const std::function<void(int, int)> divide = [&](int count, int lanes) {
    if (count == 1) return layout.lanes_of_rank.push_back(lanes);
    divide(count - count / 2, lanes / 2);
    divide(count / 2, lanes / 2);
  };
  for (const int count : ranks) divide(count, block);
  return layout;
}

}  // namespace artel::comm
