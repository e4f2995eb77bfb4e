#pragma once

#include <memory>

#include "artel/comm/shm/segment.h"
#include "artel/comm/transport.h"

namespace artel::comm::shm {

// Processes (or threads) of one machine. Returns when all ranks are there.
std::unique_ptr<Transport> make_transport(const SegmentOptions& options);

}  // namespace artel::comm::shm
