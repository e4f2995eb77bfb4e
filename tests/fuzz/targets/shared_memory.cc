#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>

#include "artel/comm/shm/rendezvous.h"
#include "tests/fuzz/stranger.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::shared_memory {
namespace {

// Rank 0, who waits for another rank that never comes.
class Waiting {
 public:
  Waiting() : thread_([this] { wait(); }) {}
  ~Waiting() {
    ends_ = true;
    thread_.join();
  }

  comm::FileHandle connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = "artel/" + name_;
    path.copy(address.sun_path + 1, path.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
    comm::FileHandle socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    require(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0,
            ErrorKind::internal, "nobody listens any more");
    return socket;
  }

 private:
  void wait() {
    try {
      host_.admit_all({.token = "secret",
                       .size = 2,
                       .arena_bytes = 4096,
                       .meanwhile =
                           [this] {
                             if (ends_) fail(ErrorKind::cancelled, "enough");
                           }},
                      STDIN_FILENO);
    } catch (const Error&) {
    }
  }

  std::string name_ = fmt::format("fuzz-{}", ::getpid());
  std::atomic<bool> ends_{false};
  comm::shm::Host host_{name_, Deadline::after(86400)};
  std::thread thread_;
};

}  // namespace

// Data from a foreign process at rank 0 of workers on one machine, as one message.
void read(const Bytes& bytes) {
  static const Waiting waiting;
  if (!bytes.data.empty()) say(waiting.connect(), bytes.text());
}

std::vector<std::string> seeds() {
  std::string hello("1ART\5\0\0\0", 8);
  hello += std::string(8, 'x') + std::string("\2\0\0\0\1\0\0\0", 8);
  return {hello, hello.substr(0, 12), "x"};
}

}  // namespace artel::fuzz::shared_memory
