// Sums over workers that do not come from lanes.
#pragma once

#include <span>
#include <string_view>

#include "artel/comm/group.h"

namespace artel {

// Adds up over the workers of a group in one order, whatever the transport.
void add_over_workers(comm::Group& group, std::span<std::byte> data, comm::ElementType type,
                      std::string_view label);

}  // namespace artel
