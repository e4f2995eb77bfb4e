// Adds up the sums of adjacent lanes in the order of the lane tree.
//
// A tree over lanes is given in postfix form: `merges[i]` says how many pairs of sums are added
// once the sum of lane i is on top of a stack. A pass takes a whole subtree whose terms are few
// enough to be packed together and adds its lanes in registers. Passes leave their sums on a stack
// in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"

namespace artel::kernels {

struct SumPass {
  int first, last;  // lanes
  int level;        // sums on the stack in memory before it
  int merges;       // pairs that are added in memory after it
};

// Cuts one subtree into passes of at most `most` terms, or of one lane. terms[i] and merges[i] are
// those of lane i.
std::vector<SumPass> sum_passes(std::span<const int64_t> terms, std::span<const int> merges,
                                int64_t most);

// The pairs that are added inside a pass after each of its lanes.
std::vector<int> merges_inside(const SumPass& pass, std::span<const int> merges);

// The most sums on the stack for a subtree of this many lanes.
int most_levels(int lanes);

// Floats of a stack in memory for sums of `size` floats, if all lanes have `terms` terms together.
int64_t stack_floats(int lanes, int64_t terms, int64_t most, int64_t size);

// Runs each pass by run(pass, where to write its sum) and adds the sums, of `size` floats, up to
// `out`.
void run_passes(ThreadPool& pool, std::span<const SumPass> passes, int64_t size, float* out,
                float* stack, const std::function<void(const SumPass&, float* sum)>& run);

}  // namespace artel::kernels
