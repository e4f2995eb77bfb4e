// TCP sockets for the control connections: every failure says what it means for the user.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/file_handle.h"

namespace artel::comm::control {

struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

// "HOST:PORT" or "[ADDRESS]:PORT". Throws for anything else.
Endpoint parse_endpoint(std::string_view text);

// The address of a network interface of this machine ("eth0"), or the text itself if it is an
// address of this machine. Throws with the list of interfaces if it is neither.
std::string address_of_interface(const std::string& name);

// Listens at the endpoint, which must be an address of this machine.
FileHandle listen_at(const Endpoint& endpoint);
// Connects, again and again until the deadline while rank 0 is not there yet. The error tells apart
// an unknown name, a refusal, no route and no answer.
FileHandle connect_to(const Endpoint& endpoint, Deadline deadline);
// The address and the port of this machine that a socket uses.
std::string local_address(int socket);
uint16_t port_of(int socket);
// All addresses of this machine that others may reach, the loopback's last.
std::vector<std::string> own_addresses();

// Sends all bytes or throws at the deadline.
void send_all(int socket, std::string_view bytes, Deadline deadline);

// Appends what has arrived within `seconds`; false when the other side has closed.
bool receive_some(int socket, double seconds, std::string& out);

}  // namespace artel::comm::control
