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
#include "artel/base/random.h"

namespace artel::comm::shm {
namespace {

constexpr uint32_t kMagic = 0x54524131;
constexpr uint32_t kVersion = 5;  // changes with the layout of the segment

struct Hello {
  uint32_t magic;
  uint32_t version;
  uint64_t token;  // a hash
  int32_t size;
  int32_t rank;
};

struct Answer {
  std::array<char, 128> refusal;  // empty: welcome
  uint64_t arena_bytes;
};

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

void send_answer(int socket, const Answer& answer, int file) {
  iovec data{const_cast<Answer*>(&answer), sizeof(answer)};
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

std::pair<Answer, FileHandle> receive_answer(int socket) {
  Answer answer{};
  iovec data{&answer, sizeof(answer)};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  require(got == sizeof(answer), ErrorKind::communication,
          "[comm shm] rank 0 hung up before it answered");
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  int file = -1;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&file, CMSG_DATA(header), sizeof(int));
  return {answer, FileHandle(file)};
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
  std::vector<bool> here(invitation.size, false);
  here[0] = true;
  while (std::find(here.begin(), here.end(), false) != here.end()) {
    require(wait_readable(socket_.get(), deadline_, invitation.meanwhile), ErrorKind::timeout,
            "[comm shm] group '{}': got {} of {} ranks before the deadline", name_,
            std::count(here.begin(), here.end(), true), invitation.size);
    const FileHandle guest(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello{};
    if (guest.get() < 0 || !wait_readable(guest.get(), Deadline::after(1)) ||
        recv(guest.get(), &hello, sizeof(hello), 0) != sizeof(hello))
      continue;
    Answer answer{{}, invitation.arena_bytes};
    const auto refuse = [&](const std::string& reason) {
      std::copy_n(reason.begin(), std::min(reason.size(), answer.refusal.size() - 1),
                  answer.refusal.begin());
    };
    if (hello.magic != kMagic)
      refuse("it is not a worker of artel");
    else if (hello.version != kVersion)
      refuse(fmt::format("got version {} of the shared memory, expected {}; try one artel for all",
                         hello.version, kVersion));
    else if (hello.token != hash_name(invitation.token))
      refuse("wrong token");
    else if (hello.size != invitation.size)
      refuse(fmt::format("got a group of {} ranks, expected {}", hello.size, invitation.size));
    else if (hello.rank < 1 || hello.rank >= invitation.size)
      refuse(fmt::format("got rank {}, expected 1 to {}", hello.rank, invitation.size - 1));
    else if (here[hello.rank])
      refuse(fmt::format("rank {} has already joined", hello.rank));
    else
      here[hello.rank] = true;
    send_answer(guest.get(), answer, answer.refusal[0] == 0 ? file : -1);
  }
}

Admission ask_to_join(const std::string& name, const Request& request, Deadline deadline) {
  const auto [address, length] = address_of(name);
  while (true) {
    const FileHandle socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      require(!deadline.passed(), ErrorKind::timeout,
              "[comm shm] group '{}': rank 0 did not appear on this machine before the deadline; "
              "try transport gloo for several machines",
              name);
      if (request.meanwhile) request.meanwhile();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    const Hello hello{kMagic, kVersion, hash_name(request.token), request.size, request.rank};
    send(socket.get(), &hello, sizeof(hello), MSG_NOSIGNAL);
    require(wait_readable(socket.get(), deadline, request.meanwhile), ErrorKind::timeout,
            "[comm shm] group '{}': rank 0 did not answer before the deadline", name);
    auto [answer, file] = receive_answer(socket.get());
    answer.refusal.back() = 0;
    require(answer.refusal[0] == 0, ErrorKind::communication,
            "[comm shm] group '{}': rank 0 refused rank {}: {}", name, request.rank,
            answer.refusal.data());
    require(file.get() >= 0, ErrorKind::communication,
            "[comm shm] group '{}': rank 0 sent no memory", name);
    return {std::move(file), answer.arena_bytes};
  }
}

}  // namespace artel::comm::shm
