// Factories provided by the folders of transports.
#pragma once

#include <memory>
#include <string>

#include "artel/comm/connection/machine.h"
#include "artel/comm/transports/transports.h"

namespace artel::comm {

std::unique_ptr<Transport> make_shm_transport(const GroupOptions& options);
// Ranks with the same machine, unless it is "", exchange their messages through shared memory.
std::unique_ptr<Transport> make_gloo_transport(const GroupOptions& options,
                                               const std::string& machine = machine_id());
// Like gloo over our own connections, which can be encrypted.
std::unique_ptr<Transport> make_tcp_transport(const GroupOptions& options,
                                              const std::string& machine = machine_id());
std::unique_ptr<Transport> make_mpi_transport(const GroupOptions& options);

}  // namespace artel::comm
