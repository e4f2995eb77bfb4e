// Collectives made of messages only, for ranks without common memory.
#pragma once

#include <span>
#include <vector>

#include "artel/comm/executor.h"
#include "artel/comm/lane_tree.h"

namespace artel::comm {

// Sends the operation to the next rank of a ring and compares it with that of the one before: if
// any two ranks differ, some neighbours do. Throws the difference.
void compare_operations(const Route& route, int rank, Patience& patience);

// The canonical tree over messages. Slice r of the data belongs to rank r, which gets the partial
// sums of all for it, finishes the tree and sends the total to all: 2(N-1)/N of the bytes when each
// rank has one subtree. Segments stream, as in executor.h. `output` may be one of `partials`.
void lane_reduce_messages(const Route& route, int rank, Patience& patience, const LaneNodes& nodes,
                          std::span<std::byte* const> partials, std::span<std::byte> output,
                          ElementType type, const Reduction& reduction, size_t divisor);

}  // namespace artel::comm
