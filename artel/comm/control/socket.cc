#include "artel/comm/control/socket.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "artel/base/error.h"

namespace artel::comm::control {
namespace {

struct Address {
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }

  sockaddr_storage bytes{};
  socklen_t length = 0;
};

// An abstract name: it lives as long as the socket and needs no file.
Address local_name(const std::string& name) {
  Address address;
  auto* const local = reinterpret_cast<sockaddr_un*>(&address.bytes);
  require(name.size() < sizeof(local->sun_path), ErrorKind::invalid_argument,
          "[comm] name on this machine: got {} characters, expected at most {}", name.size(),
          sizeof(local->sun_path) - 1);
  local->sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), local->sun_path + 1);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

// The first of the ports that the kernel gives to sockets that ask for any.
uint16_t first_ephemeral_port() {
  uint16_t first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

Address resolve(const Endpoint& endpoint) {
  if (endpoint.local()) return local_name(endpoint.host.substr(1));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int error = getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
  require(error == 0, ErrorKind::communication,
          "[comm] host '{}' cannot be resolved: {}; try its numeric address", endpoint.host,
          gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  Address address;
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  return address;
}

std::string to_text(const sockaddr* address) {
  std::array<char, NI_MAXHOST> text{};
  const socklen_t bytes =
      address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  getnameinfo(address, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

FileHandle open_socket(const Address& address) {
  return FileHandle(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

int wait_for(int socket, short events, double seconds) {
  pollfd entry{socket, events, 0};
  const int milliseconds = seconds > 0 ? static_cast<int>(std::min(seconds, 1e6) * 1000) + 1 : 0;
  return poll(&entry, 1, milliseconds);
}

// Begins to connect; returns errno.
int begin_to_connect(int socket, const Address& address) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  return connect(socket, address.get(), address.length) == 0 ? 0 : errno;
}

// Waits for a connection that was begun; returns errno.
int finish_connecting(int socket, double seconds) {
  if (wait_for(socket, POLLOUT, seconds) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return error;
  // A process of another user that takes a worker's local name is not that worker.
  if (!is_own_user(socket)) return ECONNREFUSED;
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return 0;
}

// Connects within `seconds`; returns errno.
int try_connect(int socket, const Address& address, double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  int error = begin_to_connect(socket, address);
  // The queue of a local listener is full: perhaps of processes of other users.
  while (error == EAGAIN && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    error = begin_to_connect(socket, address);
  }
  return error == 0 || error == EINPROGRESS ? finish_connecting(socket, seconds) : error;
}

std::string explain(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "the host is up but refuses the connection: rank 0 is not listening there, or a "
             "firewall rejects it";
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "no route to the host: it is down, or the wrong network interface is used";
    case ETIMEDOUT:
      return "no answer: the address is wrong, or a firewall drops the packets";
    default:
      return std::strerror(error);
  }
}

struct Interface {
  std::string name;
  std::string address;
  bool loopback;
};

// Network interfaces with an address, in system order. For each, IPv4 comes before IPv6.
std::vector<Interface> interfaces() {
  ifaddrs* raw = nullptr;
  require(getifaddrs(&raw) == 0, ErrorKind::io, "[comm] network interfaces: {}",
          std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, &freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6)
      found.push_back(
          {entry->ifa_name, to_text(entry->ifa_addr), (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

}  // namespace

Endpoint parse_endpoint(std::string_view text) {
  if (text.starts_with('@') && text.size() > 1) return {.host = std::string(text)};
  const size_t colon = text.rfind(':');
  Endpoint endpoint;
  bool valid = colon != std::string_view::npos && colon > 0;
  if (valid) {
    endpoint.host = text.substr(0, colon);
    if (endpoint.host.front() == '[' && endpoint.host.back() == ']')
      endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    valid = error == std::errc() && parsed == end && endpoint.port != 0 && !endpoint.host.empty();
  }
  require(valid, ErrorKind::invalid_argument,
          "[comm] address of rank 0: got '{}', expected HOST:PORT such as 10.0.0.1:29500", text);
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.local()) return endpoint.host;
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint.host, v6 ? "]" : "", endpoint.port);
}

Endpoint resolved(const Endpoint& endpoint) {
  if (endpoint.local()) return endpoint;
  return {.host = to_text(resolve(endpoint).get()), .port = endpoint.port};
}

std::string address_of_interface(const std::string& name) {
  std::vector<std::string> known;
  for (const Interface& interface : interfaces()) {
    if (interface.name == name || interface.address == name) return interface.address;
    known.push_back(fmt::format("{} ({})", interface.name, interface.address));
  }
  fail(ErrorKind::invalid_argument, "[comm] network interface: got '{}', expected one of {}", name,
       fmt::join(known, ", "));
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  std::vector<std::string> loopback;
  for (const Interface& interface : interfaces())
    (interface.loopback ? loopback : addresses).push_back(interface.address);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

FileHandle listen_at(const Endpoint& endpoint) {
  const Address address = resolve(endpoint);
  FileHandle socket = open_socket(address);
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(socket.get(), address.get(), address.length) != 0) {
    require(errno != EADDRNOTAVAIL, ErrorKind::communication,
            "[comm] {}:{} is not an address of this machine, but rank 0 must listen there; try the "
            "address of the machine that runs rank 0",
            endpoint.host, endpoint.port);
    fail(ErrorKind::communication,
         "[comm] {}:{}: {}; another run may be listening there; try another port", endpoint.host,
         endpoint.port, std::strerror(errno));
  }
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  require(::listen(socket.get(), 1024) == 0, ErrorKind::communication, "[comm] listen: {}",
          std::strerror(errno));
  return socket;
}

Endpoint free_endpoint(const std::string& host) {
  constexpr uint16_t kLowest = 10000;
  constexpr int kTries = 20;
  const uint16_t end = first_ephemeral_port();
  std::random_device random;
  for (int trial = 0; trial < kTries && end > kLowest; ++trial) {
    const Endpoint endpoint{host, static_cast<uint16_t>(kLowest + random() % (end - kLowest))};
    const Address address = resolve(endpoint);
    const FileHandle socket = open_socket(address);
    if (bind(socket.get(), address.get(), address.length) == 0) return endpoint;
  }
  return {host, port_of(listen_at({host, 0}).get())};
}

FileHandle connect_to(const Endpoint& endpoint, Deadline deadline,
                      const std::function<void()>& meanwhile) {
  constexpr double kTrySeconds = 1;
  const Address address = resolve(endpoint);
  int error = ETIMEDOUT;
  do {
    FileHandle socket = open_socket(address);
    error = try_connect(socket.get(), address,
                        meanwhile ? std::min(deadline.left(), kTrySeconds) : deadline.left());
    if (error == 0) return socket;
    if (meanwhile) meanwhile();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (!deadline.passed());
  fail(ErrorKind::communication, "[comm] rank 0 at {}:{} cannot be reached: {}", endpoint.host,
       endpoint.port, explain(error));
}

Reached reach(const Endpoint& endpoint, double seconds) {
  const Address address = resolve(endpoint);
  FileHandle socket = open_socket(address);
  const int error = try_connect(socket.get(), address, seconds);
  if (error == 0) return {.socket = std::move(socket)};
  return {.socket = FileHandle(), .refused = error == ECONNREFUSED};
}

Attempt::Attempt(const Endpoint& endpoint) : endpoint_(endpoint) { begin(); }

void Attempt::begin() {
  const Address address = resolve(endpoint_);
  if (socket_.get() < 0) socket_ = open_socket(address);
  const int error = begin_to_connect(socket_.get(), address);
  begun_ = error != EAGAIN;  // the queue of a local listener is full
  if (begun_ && error != 0 && error != EINPROGRESS)
    state_ = error == ECONNREFUSED ? State::refused : State::failed;
}

Attempt::State Attempt::look() {
  if (!begun_) begin();
  if (!begun_ || state_ != State::pending) return state_;
  const int error = finish_connecting(socket_.get(), 0);
  if (error != ETIMEDOUT)
    state_ = error == 0 ? State::connected : error == ECONNREFUSED ? State::refused : State::failed;
  return state_;
}

std::string address_towards(const Endpoint& endpoint) {
  const Address address = resolve(endpoint);
  // Connecting a datagram socket sends nothing: it only chooses the way.
  const FileHandle socket(::socket(address.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  require(connect(socket.get(), address.get(), address.length) == 0, ErrorKind::communication,
          "[comm] no route to {}: {}", endpoint.host, std::strerror(errno));
  return local_address(socket.get());
}

std::string local_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return to_text(reinterpret_cast<const sockaddr*>(&address));
}

uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  // The port is at the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

bool is_own_user(int socket) {
  ucred other{};
  socklen_t length = sizeof(other);
  sockaddr_storage address{};
  socklen_t address_length = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &address_length);
  if (address.ss_family != AF_UNIX) return true;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
         other.uid == geteuid();
}

bool is_loopback(const Endpoint& endpoint) {
  if (endpoint.local()) return true;
  const Address address = resolve(endpoint);
  if (address.get()->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr) !=
           0;
  return address.get()->sa_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr) >> 24 == 127;
}

void require_token(const Endpoint& endpoint, std::string_view token) {
  require(!token.empty() || endpoint.local(), ErrorKind::invalid_argument,
          "[comm] token: got none, but other users or machines can reach {}; try --token-file FILE "
          "or the environment variable ARTEL_TOKEN, with the same secret for all workers",
          to_string(endpoint));
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return address.ss_family == AF_UNIX ? "this machine"
                                      : to_text(reinterpret_cast<const sockaddr*>(&address));
}

void notice_silence(int socket, double seconds) {
  constexpr int kProbes = 4;
  const int yes = 1, probes = kProbes;
  const int pause = std::max(1, static_cast<int>(seconds / kProbes));
  const unsigned milliseconds = static_cast<unsigned>(std::max(1.0, seconds) * 1000);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &pause, sizeof(pause));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof(pause));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

}  // namespace artel::comm::control
