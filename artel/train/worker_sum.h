// Sums over workers that do not come from lanes.
#pragma once

#include <span>
#include <string_view>

#include "artel/comm/group.h"

namespace artel {

// What a worker sends, on average, when each of `workers` adds up its part of this many bytes and
// sends the sum to all others.
int64_t all_reduce_bytes(size_t bytes, int workers);

// Adds up over the workers of a group in one order, whatever the transport. Returns the bytes that
// this worker sent.
int64_t add_over_workers(comm::Group& group, std::span<std::byte> data, comm::ElementType type,
                         std::string_view label);

}  // namespace artel
