// Collectives between ranks that share memory. Buffers in the arena are read and written in place;
// others pass through staging memory in pieces.
//
// Functions that return bool return false on all ranks if some buffer is not accessible; the caller
// then sends messages. In both cases, the ranks have synchronised and compared their operations.
#pragma once

#include <span>

#include "artel/comm/collectives/lane_tree.h"
#include "artel/comm/collectives/reduction.h"
#include "artel/comm/connection/patience.h"
#include "artel/comm/shm/channel.h"

namespace artel::comm {

// Each rank sums one slice of all ranks' data and writes it to all of them. Every byte is read and
// written once, by its owner.
void all_reduce_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                       ElementType type, const Reduction& reduction);

void broadcast_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                      int root);

// Like all_reduce_shared, along the canonical tree. `partials` are the sums of this rank's nodes.
// Writes the total to `output`.
bool lane_reduce_shared(shm::Channel& channel, Patience& patience, const LaneNodes& nodes,
                        std::span<std::byte* const> partials, std::span<std::byte> output,
                        ElementType type, const Reduction& reduction, size_t divisor);

// Like lane_reduce_shared, but rank r receives only part r of the data, from offsets[r] to
// offsets[r + 1].
bool lane_reduce_scatter_shared(shm::Channel& channel, Patience& patience, const LaneNodes& nodes,
                                std::span<std::byte* const> partials, std::span<std::byte> output,
                                std::span<const size_t> offsets, ElementType type);

// Makes `input` visible to all, calls use(rank, data of that rank) for each rank, and waits until
// all have done so. For gather, all_gather, scatter and all_to_all.
bool read_shared(shm::Channel& channel, Patience& patience, std::span<const std::byte> input,
                 const std::function<void(int rank, const std::byte* data)>& use);

// `output` = the sum over all ranks of bytes [offset, offset + output.size()).
bool reduce_shared(shm::Channel& channel, Patience& patience, std::span<const std::byte> input,
                   size_t offset, std::span<std::byte> output, ElementType type,
                   const Reduction& reduction);

}  // namespace artel::comm
