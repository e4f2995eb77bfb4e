// Sums over workers that are not over lanes.
#pragma once

#include <span>
#include <string_view>

#include "artel/comm/group.h"

namespace artel {

// Adds over the workers of a group in a fixed order, independently of the transport.
void add_over_workers(comm::Group& group, std::span<std::byte> data, comm::ElementType type,
                      std::string_view label);

}  // namespace artel
