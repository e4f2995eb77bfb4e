// Runs a schedule on a transport.
//
// Chunks are cut into segments, and a segment is forwarded as soon as it is complete, so data
// streams through the ranks and the wire never waits for an addition. After the first segment, the
// time is the transfer time of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "artel/comm/collectives/reduction.h"
#include "artel/comm/collectives/schedule.h"
#include "artel/comm/connection/patience.h"

namespace artel::comm {

// The data of one operation between the members of a group, with the ranks of that group.
struct Route {
  std::span<const int> members;  // their ranks in the transport
  uint64_t tag;                  // unique among operations that run at the same time

  std::unique_ptr<Transfer> send(Patience& patience, int peer,
                                 std::span<const std::byte> data) const {
    return patience.transport().send(members[peer], tag, data);
  }
  std::unique_ptr<Transfer> receive(Patience& patience, int peer, std::span<std::byte> data) const {
    return patience.transport().receive(members[peer], tag, data);
  }
};

// The buffers of a schedule's chunks. Chunk c of the target is [target_offsets[c], target_offsets[c
// + 1]). Sends read from the source, receives write to the target. Both are the same buffer except
// in all_to_all.
struct Chunks {
  const std::byte* source;
  std::span<const size_t> source_offsets;
  std::byte* target;
  std::span<const size_t> target_offsets;
};

// Bytes of receives in flight. Some libraries send nothing before the receiver has asked for it,
// and the request queues behind the data going the other way.
constexpr size_t kReceiveWindow = 4 << 20;
// Number of bytes by which sends may be ahead of receives. Enough to keep a wire busy; more would
// only fill the system's queues and delay requests and acknowledgements.
constexpr size_t kSendAhead = 1 << 20;

// Returns when all receives are applied and all sends have left.
void execute(const Schedule& schedule, const Chunks& chunks, const Route& route, Patience& patience,
             ElementType type, const Reduction& reduction);

}  // namespace artel::comm
