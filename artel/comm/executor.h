// Runs a schedule on a transport.
//
// Chunks are cut into segments, and a segment is sent on as soon as it is complete, so data streams
// through the ranks and the wire never waits for an addition: after the first segment, the time is
// the transfer time of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "artel/comm/patience.h"
#include "artel/comm/reduction.h"
#include "artel/comm/schedule.h"

namespace artel::comm {

// The bytes of one operation between the members of a group: ranks are those of the group.
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

// What the chunks of a schedule are. Chunk c of the target is [target_offsets[c],
// target_offsets[c + 1]); sends read from the source, receives write to the target. For all but
// all_to_all the two are the same buffer.
struct Chunks {
  const std::byte* source;
  std::span<const size_t> source_offsets;
  std::byte* target;
  std::span<const size_t> target_offsets;
};

// Bytes of receives in flight. Some libraries send nothing before the receiver has asked for it,
// and the request queues behind the data going the other way.
constexpr size_t kReceiveWindow = 4 << 20;
// How many bytes a rank may send beyond what it has received. Enough to keep a wire busy; more
// would only sit in the system's queues and hold up requests and acknowledgements.
constexpr size_t kSendAhead = 1 << 20;

// Returns when all receives are applied and all sends have left.
void execute(const Schedule& schedule, const Chunks& chunks, const Route& route, Patience& patience,
             ElementType type, const Reduction& reduction);

}  // namespace artel::comm
