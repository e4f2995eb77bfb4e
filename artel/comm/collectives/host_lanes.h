// Pure functions that divide the canonical sum among the ranks of several hosts.
//
// A host first adds up whole subtrees of its own lanes, so its wire carries one partial sum for
// each of its maximal subtrees, however many ranks it has. The ranks of a host divide that work:
// the data is cut into stripes, and rank s of each host collects stripe s of its neighbours,
// exchanges it with rank s of the other hosts, and gives the total to its neighbours.
//
//   // Two hosts with two ranks and two lanes each: one partial sum per host.
//   const std::vector<artel::comm::LaneRange> lanes = {{0, 2}, {2, 4}, {4, 6}, {6, 8}};
//   const artel::comm::HostLanes plan(8, lanes, std::vector{0, 0, 1, 1});
#pragma once

#include <span>
#include <vector>

#include "artel/comm/collectives/lane_tree.h"
#include "artel/comm/group.h"

namespace artel::comm {

class HostLanes {
 public:
  // A node of the tree that one host adds up from nodes that its ranks hold.
  struct Sum {
    struct Part {
      int rank;
      size_t index;  // among the nodes of the rank
    };
    std::vector<Part> parts;  // from left to right
    LaneTree tree;            // above the parts
  };

  // `ranges` are the lanes of each rank, consecutive; `hosts` is the host number of each rank.
  HostLanes(int lanes, std::span<const LaneRange> ranges, std::span<const int> hosts);

  int hosts() const { return static_cast<int>(ranks_.size()); }
  int host_of(int rank) const { return host_of_[static_cast<size_t>(rank)]; }
  const std::vector<int>& ranks(int host) const { return ranks_[static_cast<size_t>(host)]; }
  // The number of ranks of each host that exchange with other hosts: all ranks of the smallest
  // host.
  int stripes() const { return stripes_; }
  // -1 for a rank that exchanges only with its neighbours.
  int stripe_of(int rank) const;

  // The tree above the sums of all hosts, and the host of each of its nodes.
  const LaneTree& tree() const { return tree_; }
  std::span<const int> holders() const { return holders_; }
  // The sums of a host, from left to right.
  std::span<const Sum> sums(int host) const { return sums_[static_cast<size_t>(host)]; }

 private:
  std::vector<LaneRange> collect(int lanes, std::span<const LaneRange> ranges);

  std::vector<int> host_of_;             // by rank, numbered in the order of their first ranks
  std::vector<std::vector<int>> ranks_;  // by host
  int stripes_ = 0;
  std::vector<int> holders_;
  LaneTree tree_;
  std::vector<std::vector<Sum>> sums_;
};

// Lanes for sums in any order. The ranks of a host share one subtree, each with one of its nodes,
// so each host sends a single partial sum.
LaneLayout lanes_by_host(std::span<const int> hosts);

}  // namespace artel::comm
