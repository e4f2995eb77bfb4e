#include "artel/comm/shm/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "artel/base/error.h"

namespace artel::comm::shm {
namespace {

// A worker of a version to come: what it is told.
std::string ask_as_version(const std::string& name, uint32_t version) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "artel/" + name;
  std::copy(path.begin(), path.end(), address.sun_path + 1);
  const FileHandle socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return std::strerror(errno);
  const uint32_t hello[6] = {0x54524131, version, 0, 0, 2, 1};
  send(socket.get(), hello, sizeof hello, 0);
  char answer[256] = {};
  recv(socket.get(), answer, sizeof answer - 1, 0);  // the challenge
  std::memset(answer, 0, sizeof answer);
  recv(socket.get(), answer, sizeof answer - 1, 0);
  return answer;
}

TEST(Rendezvous, NamesBothVersionsToAWorkerOfAnother) {
  const std::string name = "rendezvous_test_" + std::to_string(::getpid());
  Host host(name, Deadline::after(30));
  std::thread admitting([&] { host.admit_all({.token = "t", .size = 2}, STDIN_FILENO); });
  EXPECT_EQ(
      ask_as_version(name, 99),
      "different versions: got shared memory 99, expected 6; try the same artel on all machines");
  // The right one is not disturbed.
  ask_to_join(name, {.token = "t", .size = 2, .rank = 1}, Deadline::after(30));
  admitting.join();
}

TEST(Rendezvous, ATokenIsNotEnoughForAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string name = "rendezvous_user_test_" + std::to_string(::getpid());
  Host host(name, Deadline::after(30));
  const pid_t other = ::fork();
  if (other == 0) {
    // It knows the token, and is the first to ask.
    if (::setuid(65534) != 0) ::_exit(2);
    try {
      ask_to_join(name, {.token = "t", .size = 2, .rank = 1}, Deadline::after(5));
    } catch (const Error& error) {
      const std::string text = error.what();
      ::_exit(text.find("a process of another user has taken this name") != text.npos ? 0 : 3);
    }
    ::_exit(1);
  }
  std::thread admitting([&] { host.admit_all({.token = "t", .size = 2}, STDIN_FILENO); });
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  ask_to_join(name, {.token = "t", .size = 2, .rank = 1}, Deadline::after(30));
  admitting.join();
}

// It does not look at whom it connects to.
TEST(Rendezvous, AnotherUserIsToldNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string name = "rendezvous_stranger_test_" + std::to_string(::getpid());
  Host host(name, Deadline::after(30));
  std::thread admitting([&] { host.admit_all({.token = "t", .size = 2}, STDIN_FILENO); });
  const pid_t other = ::fork();
  if (other == 0) ::_exit(::setuid(65534) == 0 && ask_as_version(name, 6).empty() ? 0 : 1);
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  ask_to_join(name, {.token = "t", .size = 2, .rank = 1}, Deadline::after(30));
  admitting.join();
}

}  // namespace
}  // namespace artel::comm::shm
