// The canonical order of a sum over lanes: one fixed binary tree.
//
// The tree over lanes [first, last) is a leaf for one lane; otherwise its left child takes the
// largest power of two that is smaller than the number of lanes, its right child the rest. Any
// contiguous range of lanes consists of a few whole subtrees (at most 2 log2 of the lane count), so
// a worker adds inside its subtrees, and the owner of each slice of the data finishes the tree. The
// bits of the result depend only on the number of lanes, never on who held them.
//
//   // The third of three workers, with eight lanes, adds up two subtrees: 5, and 6 with 7.
//   const auto subtrees = artel::comm::lane_subtrees(8, artel::comm::even_lanes(8, 3, 2));
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "artel/comm/collectives/reduction.h"

namespace artel::comm {

struct LaneRange {
  int first = 0;
  int last = 0;  // exclusive

  int size() const { return last - first; }
  bool operator==(const LaneRange&) const = default;
};

// The lane at which the node over `range` is cut; range.size() > 1.
int lane_split(LaneRange range);

// The maximal subtrees of the tree over [0, lanes) that cover `range`, from left to right.
std::vector<LaneRange> lane_subtrees(int lanes, LaneRange range);

// The tree over one node in postfix form: for each of its lanes, how many pairs of sums are added
// once the sums up to that lane are there.
std::vector<int> lane_merges(LaneRange node);

// True if two ranges are the children of one node of the tree, so that their sums are added.
bool are_halves(int lanes, LaneRange left, LaneRange right);

// Lanes spread as evenly as contiguous ranges allow: worker w of n gets the w-th range.
LaneRange even_lanes(int lanes, int workers, int worker);

// The tree over [0, lanes) above nodes whose sums are known: built once, evaluated often.
class LaneTree {
 public:
  // Together the nodes cover the whole tree, from left to right.
  LaneTree(int lanes, std::vector<LaneRange> nodes);

  std::span<const LaneRange> nodes() const { return nodes_; }

  // Adds the nodes up to the root: partials[i] is the sum of nodes()[i]. Writes `count` elements to
  // every target; targets may be partials. Pure: the caller's thread does the work.
  void add(std::span<const std::byte* const> partials, std::span<std::byte* const> targets,
           ElementType type, size_t count, const Reduction& reduction = {},
           size_t divisor = 1) const;

 private:
  // A partial sum, or the sum of two earlier results.
  struct Instruction {
    int left;   // index of a result; for a leaf, of a partial
    int right;  // -1 for a leaf

    bool operator==(const Instruction&) const = default;
  };

  int compile(LaneRange range, size_t& used);

  std::vector<LaneRange> nodes_;
  std::vector<Instruction> instructions_;  // children come before their parents
  bool even_;                              // true if it is the tree over single leaves
};

// The nodes of the tree that each worker holds.
class LaneNodes {
 public:
  // The workers' lanes are consecutive. A worker holds maximal subtrees, or each lane by itself.
  LaneNodes(int lanes, std::span<const LaneRange> workers, bool each_lane);

  const LaneTree& tree() const { return tree_; }
  std::span<const LaneRange> of(int worker) const {
    const size_t begin = worker == 0 ? 0 : ends_[worker - 1];
    return tree_.nodes().subspan(begin, ends_[worker] - begin);
  }

 private:
  std::vector<size_t> ends_;  // of each worker's nodes
  LaneTree tree_;
};

// Adds the buffers of the lanes of `subtree` (one of lane_subtrees) into `target`.
void add_lanes(LaneRange subtree, std::span<const std::byte* const> lanes, std::byte* target,
               ElementType type, size_t count, const Reduction& reduction = {});

}  // namespace artel::comm
