// Places the activations of a plan: buffers that are never in use at the same time share memory.
#pragma once

#include "artel/exec/plan.h"

namespace artel {

// Every buffer begins on a cache line.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Sets the offsets of all activation buffers and plan.activation_bytes. Largest first, each at the
// lowest place that is free during its life: O(n^2) in the number of buffers, close to the least
// possible sum on networks, whose largest buffers decide the peak.
void place_activations(Plan& plan);

}  // namespace artel
