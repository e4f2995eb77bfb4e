#include "artel/exec/cpu/rows/sum_passes.h"

#include <bit>
#include <numeric>

#include "artel/base/error.h"
#include "artel/exec/cpu/elementwise/copy.h"
#include "artel/exec/cpu/elementwise/slots.h"

namespace artel::kernels {
namespace {

struct Subtree {
  int first, last;
  int64_t terms;
  int left = -1, right = -1;  // children
};

// The nodes of a tree in postfix form, children before their parents.
std::vector<Subtree> nodes_of(std::span<const int64_t> terms, std::span<const int> merges) {
  std::vector<Subtree> nodes;
  std::vector<int> stack;
  const auto push = [&](const Subtree& node) {
    stack.push_back(static_cast<int>(nodes.size()));
    nodes.push_back(node);
  };
  for (int lane = 0; lane < static_cast<int>(terms.size()); ++lane) {
    push({lane, lane + 1, terms[lane]});
    for (int i = 0; i < merges[lane]; ++i) {
      require(stack.size() > 1, ErrorKind::internal, "[sum] lane {}: got too many merges", lane);
      const int right = stack.back(), left = stack[stack.size() - 2];
      stack.resize(stack.size() - 2);
      push({nodes[left].first, nodes[right].last, nodes[left].terms + nodes[right].terms, left,
            right});
    }
  }
  require(stack.size() == 1, ErrorKind::internal, "[sum] lanes: got {} subtrees, expected 1",
          stack.size());
  return nodes;
}

}  // namespace

std::vector<SumPass> sum_passes(std::span<const int64_t> terms, std::span<const int> merges,
                                int64_t most) {
  const std::vector<Subtree> nodes = nodes_of(terms, merges);
  std::vector<SumPass> passes;
  int level = 0;
  const auto emit = [&](const auto& self, const Subtree& node) -> void {
    const bool stacks = most_levels(node.last - node.first) <= kMostStackedSums;
    if (node.left < 0 || (node.terms <= most && stacks)) {
      passes.push_back({node.first, node.last, level++, 0});
      return;
    }
    self(self, nodes[node.left]);
    self(self, nodes[node.right]);
    ++passes.back().merges;
    --level;
  };
  emit(emit, nodes.back());
  return passes;
}

std::vector<int> merges_inside(const SumPass& pass, std::span<const int> merges) {
  std::vector<int> inside(merges.begin() + pass.first, merges.begin() + pass.last);
  inside.back() = 0;
  inside.back() = pass.last - pass.first - 1 - std::accumulate(inside.begin(), inside.end(), 0);
  return inside;
}

int most_levels(int lanes) {
  return std::bit_width(static_cast<unsigned>(lanes > 0 ? lanes - 1 : 0)) + 1;
}

int64_t stack_floats(int lanes, int64_t terms, int64_t most, int64_t size) {
  const bool one_pass = terms <= most && most_levels(lanes) <= kMostStackedSums;
  return lanes == 1 || one_pass ? 0 : (most_levels(lanes) - 1) * aligned_floats(size);
}

void run_passes(ThreadPool& pool, std::span<const SumPass> passes, int64_t size, float* out,
                float* stack, const std::function<void(const SumPass&, float* sum)>& run) {
  const auto at = [&](int level) {
    return level == 0 ? out : stack + (level - 1) * aligned_floats(size);
  };
  for (const SumPass& pass : passes) {
    run(pass, at(pass.level));
    for (int i = 0; i < pass.merges; ++i)
      add_into(pool, size, at(pass.level - i), at(pass.level - i - 1));
  }
}

}  // namespace artel::kernels
