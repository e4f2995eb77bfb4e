// The transports by name. For one that this build lacks, a file unavailable.cc says so.
#pragma once

#include <memory>

#include "artel/comm/machine.h"
#include "artel/comm/options.h"
#include "artel/comm/transport.h"

namespace artel::comm {

// Returns when all ranks have joined. Throws for an unknown or missing transport.
std::unique_ptr<Transport> make_transport(const GroupOptions& options);

std::unique_ptr<Transport> make_shm_transport(const GroupOptions& options);
// Ranks with the same machine, unless it is "", exchange their messages through shared memory.
std::unique_ptr<Transport> make_gloo_transport(const GroupOptions& options,
                                               const std::string& machine = machine_id());
// The same over connections of our own, which can be encrypted.
std::unique_ptr<Transport> make_tcp_transport(const GroupOptions& options,
                                              const std::string& machine = machine_id());
std::unique_ptr<Transport> make_mpi_transport(const GroupOptions& options);

}  // namespace artel::comm
