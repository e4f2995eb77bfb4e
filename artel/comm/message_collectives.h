// Collectives made of messages only, for ranks without common memory.
#pragma once

#include <span>
#include <vector>

#include "artel/comm/executor.h"
#include "artel/comm/lane_tree.h"

namespace artel::comm {

// Sends the operation to the next rank of a ring and compares it with that of the previous one: if
// any two ranks differ, some neighbours do. Throws an Error that shows the difference.
void compare_operations(const Route& route, int rank, Patience& patience);

// The canonical tree over messages. Slice r of the data belongs to rank r, which receives
// everybody's partial sums of it, finishes the tree and sends the total to all: 2(N-1)/N of the
// bytes when each rank has one subtree. Segments stream, as in executor.h. `output` may be one of
// `partials`.
void lane_reduce_messages(const Route& route, int rank, Patience& patience, const LaneNodes& nodes,
                          std::span<std::byte* const> partials, std::span<std::byte> output,
                          ElementType type, const Reduction& reduction, size_t divisor);

// The first half of it, for slices that the caller cuts: slice r is from offsets[r] to offsets[r +
// 1] of the data, and only its owner gets its total, at its place in `output`.
void lane_reduce_scatter_messages(const Route& route, int rank, Patience& patience,
                                  const LaneNodes& nodes, std::span<std::byte* const> partials,
                                  std::span<std::byte> output, std::span<const size_t> offsets,
                                  ElementType type);

}  // namespace artel::comm
