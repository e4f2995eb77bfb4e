// Sockets for the control connections, TCP or local to this machine: every failure says what it
// means for the user.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/file_handle.h"

namespace artel::comm::control {

struct Endpoint {
  std::string host;  // or "@NAME": a name on this machine, without a port
  uint16_t port = 0;

  bool local() const { return host.starts_with('@'); }
};

// "HOST:PORT", "[ADDRESS]:PORT" or "@NAME". Throws for anything else.
Endpoint parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

// The address of a network interface of this machine ("eth0"), or the text itself if it is an
// address of this machine. Throws with the list of interfaces if it is neither.
std::string address_of_interface(const std::string& name);

// Listens at the endpoint, which must be an address of this machine; accepting there never blocks.
FileHandle listen_at(const Endpoint& endpoint);
// Connects, retrying until the deadline while rank 0 is not there yet. The error distinguishes an
// unknown name, a refusal, no route and no answer. `meanwhile` is called now and then, and ends the
// wait by throwing.
FileHandle connect_to(const Endpoint& endpoint, Deadline deadline,
                      const std::function<void()>& meanwhile = {});
// One attempt to connect. Without a socket: either refused, so that nobody listens there, or there
// was no answer.
struct Reached {
  FileHandle socket;
  bool refused = false;
};
Reached reach(const Endpoint& endpoint, double seconds);
// The same without waiting.
class Attempt {
 public:
  enum class State { pending, connected, refused, failed };
  explicit Attempt(const Endpoint& endpoint);
  State look();
  FileHandle take() { return std::move(socket_); }

 private:
  void begin();

  Endpoint endpoint_;
  FileHandle socket_;
  State state_ = State::pending;
  bool begun_ = false;
};
// The address of this machine from which the endpoint is reached.
std::string address_towards(const Endpoint& endpoint);
// The address and the port of this machine that a socket uses.
std::string local_address(int socket);
uint16_t port_of(int socket);
// Whether the other side of a socket belongs to the user of this process. Of a TCP connection
// nothing is known: true.
bool is_own_user(int socket);
// Whether only processes of this machine, of any user, can reach the endpoint.
bool is_loopback(const Endpoint& endpoint);
// Throws without a token, except for local names, where the kernel says whose process connects.
void require_token(const Endpoint& endpoint, std::string_view token);
// Where a socket's other side is.
std::string peer_address(int socket);
// All addresses of this machine that others may reach, loopback addresses last.
std::vector<std::string> own_addresses();

// TCP gives the connection up when the other side has not answered for so many seconds, whether or
// not there is something to send. Nothing for sockets local to the machine.
void notice_silence(int socket, double seconds);

}  // namespace artel::comm::control
