// Assigns memory to the activations of a plan. Buffers with disjoint lifetimes share memory.
#pragma once

#include <limits>

#include "artel/exec/plan/plan.h"

namespace artel {

// Rounds up to whole cache lines.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Buffer::last of values that are read after the run.
inline constexpr int kForever = std::numeric_limits<int>::max();

// Lets kernels write an output in place of an input that is not used again, where the kernel allows
// it. A gradient has a fixed place, so the longest-living of its inputs is computed there.
void reuse_inputs(const Graph& graph, Plan& plan);

// Sets the offsets of all activation buffers, plan.activations, and plan.activation_bytes. Places
// the largest buffers first, each at the lowest offset that is free during its lifetime. On neural
// networks this is close to optimal, because their largest buffers determine the peak.
void place_activations(Plan& plan);
// The placement for a frame that borrows the workspaces of another frame.
Placement place_without_workspaces(const Plan& plan);

}  // namespace artel
