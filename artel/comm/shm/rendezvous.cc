#include "artel/comm/shm/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/secret.h"
#include "artel/comm/connection/handshake.h"
#include "artel/comm/control/socket.h"

namespace artel::comm::shm {
namespace {

constexpr uint32_t kMagic = 0x54524131;
constexpr uint32_t kVersion = 6;  // changes with the layout of the segment
constexpr Protocol kProtocol = {kMagic, kVersion, "shared memory"};
constexpr const char* kTopic = "shared memory";

// A rank's claims in its answer to the challenge (comm/connection/handshake.h).
struct Claims {
  int32_t size;
  int32_t rank;
};

struct Welcome {
  std::array<char, 160> refusal;  // empty: welcome
  uint64_t arena_bytes;
  std::array<char, kDigestBytes> proof;  // that this is rank 0
};

// The longest message: a challenge or an answer to it.
using Message = std::array<char, 256>;

// An abstract name: it lives as long as the socket and needs no file.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "artel/" + name;
  require(!name.empty() && path.size() + 1 <= sizeof(address.sun_path), ErrorKind::invalid_argument,
          "[comm shm] group name: got {} characters, expected 1 to {}", name.size(),
          sizeof(address.sun_path) - 7);
  std::copy(path.begin(), path.end(), address.sun_path + 1);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size())};
}

bool wait_readable(int socket, Deadline deadline, const std::function<void()>& meanwhile = {}) {
  pollfd entry{socket, POLLIN, 0};
  do {
    if (poll(&entry, 1, static_cast<int>(std::min(deadline.left() * 1000, 50.0)) + 1) == 1)
      return true;
    if (meanwhile) meanwhile();
  } while (!deadline.passed());
  return false;
}

void send_welcome(int socket, const Welcome& welcome, int file) {
  iovec data{const_cast<Welcome*>(&welcome), sizeof(welcome)};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof(int));
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

std::string receive_message(int socket) {
  Message message;
  const ssize_t got = recv(socket, message.data(), message.size(), 0);
  return {message.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

std::pair<Welcome, FileHandle> receive_welcome(int socket) {
  Welcome welcome{};
  iovec data{&welcome, sizeof(welcome)};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  require(got == sizeof(welcome), ErrorKind::communication,
          "[comm shm] rank 0 hung up before it answered");
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  int file = -1;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&file, CMSG_DATA(header), sizeof(int));
  return {welcome, FileHandle(file)};
}

// The reason for refusing a rank; empty if accepted.
std::string objection(const Challenger::Verdict& verdict, int size, std::vector<bool>& here) {
  if (!verdict.objection.empty()) return verdict.objection;
  Claims claims{};
  if (verdict.claims.size() != sizeof(claims)) return "it does not say which rank it is";
  std::memcpy(&claims, verdict.claims.data(), sizeof(claims));
  if (claims.size != size)
    return fmt::format("got a group of {} ranks, expected {}", claims.size, size);
  if (claims.rank < 1 || claims.rank >= size)
    return fmt::format("got rank {}, expected 1 to {}", claims.rank, size - 1);
  if (here[claims.rank]) return fmt::format("rank {} has already joined", claims.rank);
  here[claims.rank] = true;
  return {};
}

}  // namespace

Host::Host(std::string name, Deadline deadline)
    : name_(std::move(name)),
      deadline_(deadline),
      socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  const auto [address, length] = address_of(name_);
  const int bound = bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length);
  require(bound == 0, ErrorKind::communication,
          "[comm shm] group '{}': {}; another group with this name is being formed, try another "
          "name",
          name_, std::strerror(errno));
  require(listen(socket_.get(), 128) == 0, ErrorKind::io, "[comm shm] listen: {}",
          std::strerror(errno));
}

void Host::admit_all(const Invitation& invitation, int file) {
  const RunKey key(invitation.token);
  std::vector<bool> here(invitation.size, false);
  here[0] = true;
  while (std::find(here.begin(), here.end(), false) != here.end()) {
    require(wait_readable(socket_.get(), deadline_, invitation.meanwhile) && !deadline_.passed(),
            ErrorKind::timeout, "[comm shm] group '{}': got {} of {} ranks before the deadline",
            name_, std::count(here.begin(), here.end(), true), invitation.size);
    const FileHandle guest(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (guest.get() < 0 || !control::is_own_user(guest.get())) {
      // A stream of such connections must not hide the end of a member or of the time.
      if (invitation.meanwhile) invitation.meanwhile();
      continue;
    }
    Challenger challenger(kProtocol);
    const std::string challenge = challenger.challenge();
    send(guest.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (!wait_readable(guest.get(), Deadline::after(1))) continue;
    const Challenger::Verdict verdict = challenger.judge(key, kTopic, receive_message(guest.get()));
    Welcome welcome{{}, invitation.arena_bytes, {}};
    const std::string refusal = objection(verdict, invitation.size, here);
    std::copy_n(refusal.begin(), std::min(refusal.size(), welcome.refusal.size() - 1),
                welcome.refusal.begin());
    challenger.proof(key).copy(welcome.proof.data(), welcome.proof.size());
    send_welcome(guest.get(), welcome, refusal.empty() ? file : -1);
  }
}

Admission ask_to_join(const std::string& name, const Request& request, Deadline deadline) {
  const auto [address, length] = address_of(name);
  while (true) {
    // It does not block: the queue of the listener may be full of processes of other users.
    const FileHandle socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      require(!deadline.passed(), ErrorKind::timeout,
              "[comm shm] group '{}': rank 0 did not appear on this machine before the deadline; "
              "try transport gloo for several machines",
              name);
      if (request.meanwhile) request.meanwhile();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    require(control::is_own_user(socket.get()), ErrorKind::communication,
            "[comm shm] group '{}': a process of another user has taken this name; try another "
            "name",
            name);
    const auto await = [&] {
      require(wait_readable(socket.get(), deadline, request.meanwhile), ErrorKind::timeout,
              "[comm shm] group '{}': rank 0 did not answer before the deadline", name);
    };
    const Claims claims{request.size, request.rank};
    Answerer answerer(kProtocol, RunKey(request.token), kTopic,
                      {reinterpret_cast<const char*>(&claims), sizeof(claims)});
    await();
    const std::string challenge = receive_message(socket.get());
    require(!challenge.empty(), ErrorKind::communication,
            "[comm shm] group '{}': rank 0 hung up before it answered", name);
    const std::string answer = answerer.answer(challenge);
    send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    await();
    auto [welcome, file] = receive_welcome(socket.get());
    welcome.refusal.back() = 0;
    if (welcome.refusal[0] != 0)
      fail_refused(fmt::format("[comm shm] group '{}': rank 0 refused rank {}", name, request.rank),
                   welcome.refusal.data());
    require(
        answerer.believes({welcome.proof.data(), welcome.proof.size()}), ErrorKind::communication,
        "[comm shm] group '{}': the process with this name does not know the run's token", name);
    require(file.get() >= 0, ErrorKind::communication,
            "[comm shm] group '{}': rank 0 sent no memory", name);
    return {std::move(file), welcome.arena_bytes};
  }
}

}  // namespace artel::comm::shm
