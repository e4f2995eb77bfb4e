// The canonical order of a sum over lanes: one fixed binary tree.
//
// The tree over lanes [first, last) is a leaf for one lane; otherwise its left child takes the
// largest power of two of lanes that is smaller than their number, its right child the rest. Any
// contiguous range of lanes is a few whole subtrees (at most 2 log2 of the lane count), so a worker
// adds inside its subtrees, and whoever owns a slice of the data finishes the tree. The bits of the
// result depend on the number of lanes only, never on who held them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "artel/comm/reduction.h"

namespace artel::comm {

struct LaneRange {
  int first = 0;
  int last = 0;  // exclusive

  int size() const { return last - first; }
  bool operator==(const LaneRange&) const = default;
};

// Where the node over `range` is cut; range.size() > 1.
int lane_split(LaneRange range);

// The maximal subtrees of the tree over [0, lanes) that cover `range`, from left to right.
std::vector<LaneRange> lane_subtrees(int lanes, LaneRange range);

// Lanes spread as evenly as contiguous ranges allow: worker w of n gets the w-th range.
LaneRange even_lanes(int lanes, int workers, int worker);

// The nodes of the tree that each worker holds.
class LaneNodes {
 public:
  LaneNodes(int lanes, int workers) : lanes_(lanes) {
    nodes_.reserve(lanes);
    ends_.reserve(workers);
  }

  // The next worker, whose lanes follow those of the one before: as maximal subtrees, or each lane
  // by itself.
  void add_worker(LaneRange range, bool each_lane);

  int lanes() const { return lanes_; }
  // From left to right.
  std::span<const LaneRange> all() const { return nodes_; }
  std::span<const LaneRange> of(int worker) const {
    const size_t begin = worker == 0 ? 0 : ends_[worker - 1];
    return all().subspan(begin, ends_[worker] - begin);
  }

 private:
  int lanes_;
  std::vector<LaneRange> nodes_;
  std::vector<size_t> ends_;  // of each worker's
};

// Adds the nodes up to the root over [0, lanes): nodes[i] is a subtree whose partial sum is
// partials[i], and together they are the whole tree, from left to right. Writes `count` elements to
// every target; targets may be partials. Pure: the caller's thread does the work.
void add_tree(int lanes, std::span<const LaneRange> nodes,
              std::span<const std::byte* const> partials, std::span<std::byte* const> targets,
              ElementType type, size_t count, const Reduction& reduction = {}, size_t divisor = 1);

// Adds the buffers of the lanes of `subtree` (one of lane_subtrees) into `target`.
void add_lanes(LaneRange subtree, std::span<const std::byte* const> lanes, std::byte* target,
               ElementType type, size_t count, const Reduction& reduction = {});

}  // namespace artel::comm
