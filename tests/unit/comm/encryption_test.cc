// Encrypted connections: accepted and refused peers, and the view of an eavesdropper.
#include "artel/comm/connection/encryption.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/secret.h"
#include "artel/comm/connection/run_secret.h"
#include "artel/comm/control/control.h"
#include "ranks.h"

namespace artel::comm {
namespace {

// Two ends of a connection, with these tokens; one end is pumped by a thread of its own.
struct Ends {
  Ends(const std::string& listener_token, const std::string& caller_token) {
    std::array<int, 2> ends{};
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data());
    listener = Stream(FileHandle(ends[0]));
    caller = Stream(FileHandle(ends[1]));
    listener.encrypt(Encryption(RunKey(listener_token)), true);
    caller.encrypt(Encryption(RunKey(caller_token)), false);
  }

  Stream listener, caller;
};

TEST(Encryption, CarriesBytesInBothDirections) {
  Ends ends("secret", "secret");
  const std::string long_text = random_bytes(3 << 20);
  std::thread other([&] {
    std::string got;
    const Deadline deadline = Deadline::after(60);
    while (got.size() < long_text.size() && !deadline.passed())
      ends.listener.receive_within(1, got);
    EXPECT_EQ(got, long_text);
    ends.listener.send_all("thanks", Deadline::after(60));
  });
  ends.caller.send_all(long_text, Deadline::after(60));
  std::string got;
  const Deadline deadline = Deadline::after(60);
  while (got.size() < 6 && !deadline.passed()) ends.caller.receive_within(1, got);
  EXPECT_EQ(got, "thanks");
  other.join();
  // Its end is noticed.
  ends.listener = Stream();
  while (ends.caller.receive_within(1, got) && !deadline.passed()) continue;
  EXPECT_FALSE(deadline.passed());
}

TEST(Encryption, AnotherTokenGetsNoConnection) {
  Ends ends("secret", "Secret");
  std::string refused;
  std::thread other([&] {
    std::string got;
    const Deadline deadline = Deadline::after(60);
    try {
      while (ends.listener.receive_within(1, got) && !deadline.passed()) continue;
    } catch (const Error& error) {
      refused = error.what();
    }
    EXPECT_EQ(got, "");
    ends.listener = Stream();
  });
  EXPECT_THROW(
      {
        std::string got;
        ends.caller.send_all("weights", Deadline::after(60));
        const Deadline deadline = Deadline::after(60);
        while (ends.caller.receive_within(1, got) && !deadline.passed()) continue;
        fail(ErrorKind::communication, "closed");
      },
      Error);
  other.join();
  EXPECT_NE(refused.find("wrong token"), refused.npos) << refused;
}

TEST(Encryption, NoiseIsRefused) {
  std::array<int, 2> ends{};
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data());
  Stream listener{FileHandle(ends[0])}, stranger{FileHandle(ends[1])};
  listener.encrypt(Encryption(RunKey("secret")), true);
  stranger.send_all("GET / HTTP/1.1\r\nHost: artel\r\n\r\n", Deadline::after(60));
  std::string got;
  EXPECT_THROW(listener.receive_within(1, got), Error);
}

// Passes on what two sides of a TCP connection say, and keeps it.
class Wiretap {
 public:
  explicit Wiretap(uint16_t port) : listener_(control::listen_at({"127.0.0.1", 0})), port_(port) {
    thread_ = std::thread([this] { work(); });
  }
  ~Wiretap() { stop(); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return control::port_of(listener_.get()); }
  // After it was stopped.
  const std::string& heard() const { return heard_; }

 private:
  void work() {
    FileHandle from;
    while (from.get() < 0 && !stop_) from = FileHandle(accept(listener_.get(), nullptr, nullptr));
    if (stop_) return;
    Stream a(std::move(from)), b(control::connect_to({"127.0.0.1", port_}, Deadline::after(60)));
    const auto pass = [&](Stream& x, Stream& y) {
      std::string bytes;
      const bool open = x.receive(bytes);
      heard_ += bytes;
      try {
        y.send_all(bytes, Deadline::after(60));
      } catch (const Error&) {
        return false;
      }
      return open;
    };
    while (pass(a, b) && pass(b, a) && !stop_)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  FileHandle listener_;
  uint16_t port_;
  std::atomic<bool> stop_{false};
  std::string heard_;
  std::thread thread_;
};

TEST(Encryption, SomebodyOnTheWireReadsNothing) {
  for (const bool encrypt : {false, true}) {
    auto hub = std::make_unique<control::Hub>(control::HubOptions{
        .endpoint = {"127.0.0.1", 0}, .token = "the token", .encrypt = encrypt, .size = 2});
    const uint16_t port = hub->port();
    auto tap = std::make_unique<Wiretap>(port);
    const auto meet = [&](int rank, uint16_t at, std::unique_ptr<control::Hub> own) {
      control::Control control({.address = fmt::format("127.0.0.1:{}", at),
                                .token = "the token",
                                .encrypt = encrypt,
                                .rank = rank,
                                .size = 2},
                               std::move(own));
      return control.exchange(fmt::format("private matter of rank {}", rank))[1 - rank].blob;
    };
    std::thread other(
        [&] { EXPECT_EQ(meet(1, tap->port(), nullptr), "private matter of rank 0"); });
    EXPECT_EQ(meet(0, port, std::move(hub)), "private matter of rank 1");
    other.join();
    tap->stop();
    const std::string& heard = tap->heard();
    EXPECT_EQ(heard.find("the token"), heard.npos) << "the token is never sent";
    EXPECT_EQ(heard.find("private matter") == heard.npos, encrypt);
    EXPECT_GT(heard.size(), 200u);
  }
}

TEST(Encryption, OneThatDoesNotEncryptIsToldSo) {
  for (const bool run_encrypts : {false, true}) {
    control::Hub hub(
        {.endpoint = {"127.0.0.1", 0}, .token = "t", .encrypt = run_encrypts, .size = 2});
    try {
      control::Control({.address = fmt::format("127.0.0.1:{}", hub.port()),
                        .token = "t",
                        .encrypt = !run_encrypts,
                        .rank = 1,
                        .size = 2});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                run_encrypts ? "[comm] the run encrypts its connections, but this worker does not; "
                               "try the same cluster.encrypt for all workers"
                             : "[comm] this worker encrypts its connections, but the run does not; "
                               "try the same cluster.encrypt for all workers");
    }
  }
}

TEST(Encryption, IsNotThereForMpi) {
  EXPECT_THROW(make_transport({.transport = "mpi", .encrypt = true}), Error);
}

}  // namespace
}  // namespace artel::comm
