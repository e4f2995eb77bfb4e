// Factories provided by the folders of transports.
#pragma once

#include <memory>
#include <string>

#include "artel/comm/connection/machine.h"
#include "artel/comm/transports/transports.h"

namespace artel::comm {

namespace control {
class Control;
}  // namespace control

std::unique_ptr<Transport> make_shm_transport(const GroupOptions& options);
// Ranks with the same machine, unless it is "", exchange their messages through shared memory.
// After three failed attempts to connect, all ranks use the tcp transport instead.
std::unique_ptr<Transport> make_gloo_transport(const GroupOptions& options,
                                               const std::string& machine = machine_id());
// Like gloo, but over Artel's own connections, which can be encrypted. `control` already connects
// the ranks; without it, they meet first.
std::unique_ptr<Transport> make_tcp_transport(const GroupOptions& options,
                                              const std::string& machine = machine_id(),
                                              std::shared_ptr<control::Control> control = nullptr);
std::unique_ptr<Transport> make_mpi_transport(const GroupOptions& options);

}  // namespace artel::comm
