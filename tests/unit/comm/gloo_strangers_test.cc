// Strangers at Gloo's ports while a group forms: they come before the ranks do.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "artel/comm/connection/stream.h"
#include "tests/unit/comm/ranks.h"

namespace {

std::atomic<bool> strangers_come_first{false};

// Takes the places that a listening socket offers before anybody knows its port.
void take_places(int listener) {
  sockaddr_in place{};
  socklen_t bytes = sizeof place;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &bytes);
  if (place.sin_family != AF_INET) return;
  // More than Gloo's queue takes. The sockets stay open.
  for (int64_t pair = 0; pair < 4; ++pair) {
    const int stranger = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int result = ::connect(stranger, reinterpret_cast<const sockaddr*>(&place), sizeof place);
    EXPECT_TRUE(result == 0 || errno == EINPROGRESS) << "a stranger came too late";
    ::send(stranger, &pair, sizeof pair, MSG_NOSIGNAL);
  }
}

}  // namespace

// Takes the place of the system's own, also for Gloo.
extern "C" int listen(int socket, int backlog) noexcept {
  const auto result = static_cast<int>(syscall(SYS_listen, socket, backlog));
  if (result == 0 && strangers_come_first) take_places(socket);
  return result;
}

namespace artel::comm {
namespace {

struct StrangersComeFirst {
  StrangersComeFirst() { strangers_come_first = true; }
  ~StrangersComeFirst() { strangers_come_first = false; }
};

std::set<std::string> own_sockets() {
  std::set<std::string> inodes;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", gone)) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
      inodes.insert(std::to_string(status.st_ino));
  }
  return inodes;
}

// The TCP ports at which this process listens.
std::set<uint16_t> listening_ports() {
  std::set<uint16_t> ports;
  const std::set<std::string> own = own_sockets();
  std::ifstream table("/proc/self/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() > 9 && fields[3] == "0A" && own.contains(fields[9]))
      ports.insert(
          static_cast<uint16_t>(std::stoi(fields[1].substr(fields[1].find(':') + 1), nullptr, 16)));
  }
  return ports;
}

// Takes every place that a new port offers, as fast as it appears, until it has had enough ports.
class Squatter {
 public:
  Squatter(size_t ports, bool speaks) : thread_([=, this] { work(ports, speaks); }) {}
  ~Squatter() {
    stop_ = true;
    thread_.join();
  }

 private:
  void work(size_t ports, bool speaks) {
    std::set<uint16_t> known = listening_ports();
    std::vector<Stream> held;
    for (size_t taken = 0; !stop_ && taken < ports;) {
      for (const uint16_t port : listening_ports()) {
        if (!known.insert(port).second) continue;
        ++taken;
        // The first bytes say which of the pairs of a device is meant.
        for (int64_t pair = 0; pair < 4; ++pair) try {
            held.emplace_back(control::connect_to({"127.0.0.1", port}, Deadline::after(1)));
            if (speaks)
              held.back().send_all({reinterpret_cast<const char*>(&pair), sizeof pair},
                                   Deadline::after(1));
          } catch (const Error&) {
            break;  // closed already
          }
      }
    }
    while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(StrangersAtGloo, RanksConnectAgain) {
  for (const bool speaks : {true, false}) {
    const Squatter squatter(4, speaks);  // the hub's port, and those of the first attempt
    with_ranks(3, [](Group& group) { group.barrier(); }, {.transport = "gloo by TCP"});
  }
}

// When strangers have come first three times, all ranks agree to use connections that strangers
// cannot take.
TEST(StrangersAtGloo, RanksGiveGlooUp) {
  const StrangersComeFirst strangers;
  with_ranks(3,
             [](Group& group) {
               group.barrier();
               EXPECT_EQ(group.transport(), "tcp");
             },
             {.transport = "gloo by TCP", .join_timeout = 10});
}

TEST(StrangersAtGloo, OurOwnConnectionsAreNotDisturbed) {
  const Squatter squatter(1000, true);
  with_ranks(3, [](Group& group) { group.barrier(); }, {.transport = "tcp by TCP"});
}

}  // namespace
}  // namespace artel::comm
