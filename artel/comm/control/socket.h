// Sockets for control connections, TCP or Unix. Every error explains its likely cause.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/connection/file_handle.h"

namespace artel::comm::control {

struct Endpoint {
  std::string host;  // or "@NAME": a name on this machine, without a port
  uint16_t port = 0;

  bool local() const { return host.starts_with('@'); }
};

// "HOST:PORT", "[ADDRESS]:PORT" or "@NAME". Throws for anything else.
Endpoint parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

// The endpoint with the numeric address of its host, so that using it asks no name server. Throws
// if the name is unknown.
Endpoint resolved(const Endpoint& endpoint);

// The address of a network interface of this machine ("eth0"), or the text itself if it is an
// address of this machine. Throws with the list of interfaces if it is neither.
std::string address_of_interface(const std::string& name);

// Listens at the endpoint, which must be an address of this machine; accepting there never blocks.
FileHandle listen_at(const Endpoint& endpoint);
// A port of this machine where another process may listen soon. The kernel does not give it to
// sockets that ask for any port, so it is very likely still free then.
Endpoint free_endpoint(const std::string& host);
// Connects, retrying until the deadline while rank 0 is not reachable. The error distinguishes an
// unknown name, a refusal, no route, and no answer. `meanwhile` is called periodically and ends the
// wait by throwing.
FileHandle connect_to(const Endpoint& endpoint, Deadline deadline,
                      const std::function<void()>& meanwhile = {});
// The result of one attempt to connect: a socket, a refusal (no process listens), or no answer.
struct Reached {
  FileHandle socket;
  bool refused = false;
};
Reached reach(const Endpoint& endpoint, double seconds);
// One attempt to connect, without waiting.
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
// True if the other end of a Unix socket belongs to the same user. Always true for TCP.
bool is_own_user(int socket);
// True if only processes of this machine, of any user, can reach the endpoint.
bool is_loopback(const Endpoint& endpoint);
// Throws without a token, except for local names, where the kernel identifies the connecting user.
void require_token(const Endpoint& endpoint, std::string_view token);
// The address of a socket's other end.
std::string peer_address(int socket);
// All addresses of this machine that others may reach, loopback addresses last.
std::vector<std::string> own_addresses();

// Makes TCP close the connection after `seconds` without an answer, even if it is idle. No effect
// on Unix sockets.
void notice_silence(int socket, double seconds);

}  // namespace artel::comm::control
