// Collectives between ranks that share memory: buffers in the arena are read and written where they
// are; others pass through staging memory in pieces.
//
// Functions that return bool return false, on all ranks alike, when some buffer cannot be reached:
// the caller then sends messages. Either way, the ranks have met and their operations have been
// compared.
#pragma once

#include <span>

#include "artel/comm/lane_tree.h"
#include "artel/comm/patience.h"
#include "artel/comm/reduction.h"
#include "artel/comm/shm/channel.h"

namespace artel::comm {

// Each rank sums one slice of all ranks' data and writes it to all of them: every byte is read once
// and written once, by its owner.
void all_reduce_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                       ElementType type, const Reduction& reduction);

void broadcast_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                      int root);

// The same for the canonical tree: `partials` are the sums of this rank's nodes. The total is
// written to `output`.
bool lane_reduce_shared(shm::Channel& channel, Patience& patience, const LaneNodes& nodes,
                        std::span<std::byte* const> partials, std::span<std::byte> output,
                        ElementType type, const Reduction& reduction, size_t divisor);

// The same of part r of the data, from offsets[r] to offsets[r + 1], for rank r only.
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
