#include "artel/comm/collectives/lane_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "artel/base/error.h"
#include "artel/comm/collectives/kernels.h"

namespace artel::comm {
namespace {

constexpr size_t kBlockBytes = 4096;

// Appends the maximal subtrees of `node` that cover `range`.
void collect(LaneRange node, LaneRange range, std::vector<LaneRange>& found) {
  if (range.size() == 0 || node.last <= range.first || range.last <= node.first) return;
  if (range.first <= node.first && node.last <= range.last) {
    found.push_back(node);
    return;
  }
  const int middle = lane_split(node);
  collect({node.first, middle}, range, found);
  collect({middle, node.last}, range, found);
}

std::vector<LaneRange> leaves_of(int lanes) {
  std::vector<LaneRange> leaves;
  for (int lane = 0; lane < lanes; ++lane) leaves.push_back({lane, lane + 1});
  return leaves;
}

// The nodes of all workers. Fills `ends` with the end of each worker's nodes.
std::vector<LaneRange> nodes_of(int lanes, std::span<const LaneRange> workers, bool each_lane,
                                std::vector<size_t>& ends) {
  std::vector<LaneRange> nodes;
  for (const LaneRange& range : workers) {
    if (each_lane)
      for (int lane = range.first; lane < range.last; ++lane) nodes.push_back({lane, lane + 1});
    else
      collect({0, lanes}, range, nodes);
    ends.push_back(nodes.size());
  }
  return nodes;
}

void add_pair(const Reduction& reduction, ElementType type, const std::byte* left,
              const std::byte* right, std::byte* target, size_t count) {
  if (reduction.kind != ReductionKind::user) {
    combine_pair(reduction.kind, type, left, right, target, count);
    return;
  }
  std::memcpy(target, left, count * size_of(type));
  reduction.function(target, right, count);
}

void append_merges(LaneRange node, std::vector<int>& merges) {
  if (node.size() == 1) {
    merges.push_back(0);
    return;
  }
  const int middle = lane_split(node);
  append_merges({node.first, middle}, merges);
  append_merges({middle, node.last}, merges);
  ++merges.back();
}

}  // namespace

std::vector<int> lane_merges(LaneRange node) {
  std::vector<int> merges;
  append_merges(node, merges);
  return merges;
}

int lane_split(LaneRange range) {
  require(range.size() > 1, ErrorKind::internal, "[comm] lane_split: got {} lanes, expected two",
          range.size());
  return range.first + static_cast<int>(std::bit_floor(static_cast<unsigned>(range.size() - 1)));
}

std::vector<LaneRange> lane_subtrees(int lanes, LaneRange range) {
  require(0 <= range.first && range.first <= range.last && range.last <= lanes,
          ErrorKind::invalid_argument, "[comm] lanes {}..{}: got a range outside 0..{}",
          range.first, range.last, lanes);
  std::vector<LaneRange> found;
  collect({0, lanes}, range, found);
  return found;
}

bool are_halves(int lanes, LaneRange left, LaneRange right) {
  const LaneRange both = {left.first, right.last};
  return left.last == right.first && lane_subtrees(lanes, both).size() == 1 &&
         lane_split(both) == right.first;
}

LaneNodes::LaneNodes(int lanes, std::span<const LaneRange> workers, bool each_lane)
    : tree_(lanes, nodes_of(lanes, workers, each_lane, ends_)) {}

LaneRange even_lanes(int lanes, int workers, int worker) {
  const auto cut = [&](int w) {
    return static_cast<int>(static_cast<int64_t>(lanes) * w / workers);
  };
  return {cut(worker), cut(worker + 1)};
}

LaneTree::LaneTree(int lanes, std::vector<LaneRange> nodes) : nodes_(std::move(nodes)) {
  require(lanes > 0 && !nodes_.empty(), ErrorKind::invalid_argument,
          "[comm] lane tree: got {} lanes in {} nodes, expected at least one", lanes,
          nodes_.size());
  instructions_.reserve(2 * nodes_.size());
  size_t used = 0;
  compile({0, lanes}, used);
  require(used == nodes_.size(), ErrorKind::invalid_argument,
          "[comm] lane tree: got nodes beyond lane {}, expected a cover of the lanes", lanes);
  const int count = static_cast<int>(nodes_.size());
  even_ = count == lanes || LaneTree(count, leaves_of(count)).instructions_ == instructions_;
}

int LaneTree::compile(LaneRange range, size_t& used) {
  require(
      used < nodes_.size() && nodes_[used].first == range.first && nodes_[used].last <= range.last,
      ErrorKind::invalid_argument,
      "[comm] lane tree: the nodes do not cover lanes {}..{} by whole subtrees", range.first,
      range.last);
  if (nodes_[used] == range) {
    instructions_.push_back({static_cast<int>(used++), -1});
  } else {
    const int middle = lane_split(range);
    const int left = compile({range.first, middle}, used);
    const int right = compile({middle, range.last}, used);
    instructions_.push_back({left, right});
  }
  return static_cast<int>(instructions_.size()) - 1;
}

void LaneTree::add(std::span<const std::byte* const> partials, std::span<std::byte* const> targets,
                   ElementType type, size_t count, const Reduction& reduction,
                   size_t divisor) const {
  if (nodes_.size() <= 2) {  // one addition: its order is the tree's
    combine(reduction, type, partials, targets, count, divisor);
    return;
  }
  const bool sums = reduction.kind == ReductionKind::sum || reduction.kind == ReductionKind::mean;
  const bool wide = type == ElementType::f32 || type == ElementType::f64;
  if (sums && wide && nodes_.size() <= kTreeSources && even_) {
    fold_tree(type, partials, targets, count, reduction.kind == ReductionKind::mean ? divisor : 1);
    return;
  }
  const size_t width = size_of(type);
  // One block for each instruction: a few dozen at most, so they stay in the cache.
  std::vector<std::byte> blocks(instructions_.size() * kBlockBytes);
  std::vector<const std::byte*> results(instructions_.size());
  for (size_t begin = 0; begin < count; begin += kBlockBytes / width) {
    const size_t n = std::min(kBlockBytes / width, count - begin);
    const size_t offset = begin * width;
    for (size_t i = 0; i < instructions_.size(); ++i) {
      const auto [left, right] = instructions_[i];
      if (right < 0) {
        results[i] = partials[left] + offset;
      } else {
        std::byte* block = blocks.data() + i * kBlockBytes;
        add_pair(reduction, type, results[left], results[right], block, n);
        results[i] = block;
      }
    }
    const std::byte* total = results.back();
    if (reduction.kind == ReductionKind::mean) {
      std::byte* block = blocks.data() + (instructions_.size() - 1) * kBlockBytes;
      if (total != block) std::memcpy(block, total, n * width);
      divide(type, block, n, divisor);
      total = block;
    }
    for (std::byte* target : targets)
      if (target + offset != total) std::memcpy(target + offset, total, n * width);
  }
}

void add_lanes(LaneRange subtree, std::span<const std::byte* const> lanes, std::byte* target,
               ElementType type, size_t count, const Reduction& reduction) {
  // A subtree has the shape of a tree of its own size, because it is complete or the last one.
  std::byte* const targets[] = {target};
  // The division of a mean comes with the whole tree.
  const bool mean = reduction.kind == ReductionKind::mean;
  LaneTree(subtree.size(), leaves_of(subtree.size()))
      .add(lanes, targets, type, count, mean ? Reduction(ReductionKind::sum) : reduction);
}

}  // namespace artel::comm
