// Places the activations of a plan: buffers that are never in use at the same time share memory.
#pragma once

#include <limits>

#include "artel/exec/plan.h"

namespace artel {

// Every buffer begins on a cache line.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Buffer::last of what is read after the run.
inline constexpr int kForever = std::numeric_limits<int>::max();

// Grants the kernels' wishes to run in place where the input dies with the kernel. A gradient has
// its place already, so that of its inputs which lives longest is computed there.
void reuse_inputs(const Graph& graph, Plan& plan);

// Sets the offsets of all activation buffers, plan.activations and plan.activation_bytes. Largest
// first, each at the lowest place that is free during its life: close to the least possible sum on
// networks, whose largest buffers decide the peak.
void place_activations(Plan& plan);

}  // namespace artel
