// The canonical tree over messages, for ranks without common memory.
#pragma once

#include <span>

#include "artel/comm/collectives/host_lanes.h"
#include "artel/comm/executor.h"

namespace artel::comm {

// Each of H hosts owns one slice of the data. It receives the partial sums of the others, finishes
// the tree and sends the total to all hosts: 2(H-1)/H of the bytes on its wire when each host has
// one subtree. The ranks of a host divide this work (see host_lanes.h) and exchange the rest inside
// the host. Segments stream, as in executor.h. `partials` are the sums of this rank's nodes, which
// are used as scratch space; `output` may be one of them.
void lane_reduce_messages(const Route& route, int rank, Patience& patience, const HostLanes& plan,
                          std::span<std::byte* const> partials, std::span<std::byte> output,
                          ElementType type, const Reduction& reduction, size_t divisor);

// The first half of lane_reduce_messages, for slices cut by the caller: slice r spans offsets[r] to
// offsets[r + 1] of the data. Only rank r gets its total, at its place in `output`. All hosts of
// the plan must have the same number of ranks.
void lane_reduce_scatter_messages(const Route& route, int rank, Patience& patience,
                                  const HostLanes& plan, std::span<std::byte* const> partials,
                                  std::span<std::byte> output, std::span<const size_t> offsets,
                                  ElementType type);

}  // namespace artel::comm
