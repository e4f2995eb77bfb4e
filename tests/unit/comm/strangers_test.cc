// Strangers at the port where workers meet: idle, half-finished, nonsensical. The workers meet
// nevertheless, and what the strangers hold is given back.
#include "artel/comm/control/strangers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>

#include "artel/comm/control/control.h"

namespace artel::comm::control {
namespace {

class StrangersAtTheHub : public testing::Test {
 protected:
  StrangersAtTheHub() {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
    setrlimit(RLIMIT_NOFILE, &files);
    hub_ = std::make_unique<Hub>(
        HubOptions{.endpoint = {"127.0.0.1", 0}, .token = "secret", .size = 2});
    place_ = {"127.0.0.1", hub_->port()};
  }

  Stream connect() { return Stream(connect_to(place_, Deadline::after(60))); }

  // From 127.0.0.HOST.
  Stream connect_from(int host) {
    FileHandle socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = [](int last, uint16_t port) {
      return sockaddr_in{.sin_family = AF_INET,
                         .sin_port = htons(port),
                         .sin_addr = {htonl((127U << 24) + static_cast<uint32_t>(last))},
                         .sin_zero = {}};
    };
    const sockaddr_in own = address(host, 0), hub = address(1, place_.port);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&hub), sizeof hub), 0);
    return Stream(std::move(socket));
  }

  // COUNT connections, each address in turn.
  std::vector<Stream> connect_from_many(int count) {
    constexpr int kHosts = 8;
    std::vector<Stream> strangers;
    for (int i = 0; i < count; ++i) strangers.push_back(connect_from(2 + i % kHosts));
    return strangers;
  }

  // Waits until at most `most` of them are open; returns their number.
  static ptrdiff_t count_open(std::vector<Stream>& strangers, size_t most) {
    const auto open = [&] { return std::count_if(strangers.begin(), strangers.end(), is_open); };
    const Deadline deadline = Deadline::after(60);
    while (open() > static_cast<ptrdiff_t>(most) && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return open();
  }

  // Both ranks meet at the hub and tell each other something.
  void expect_to_meet() {
    std::unique_ptr<Hub> hub = std::move(hub_);
    const auto meet = [&](int rank, std::unique_ptr<Hub> own) {
      Control control({.address = to_string(place_), .token = "secret", .rank = rank, .size = 2},
                      std::move(own));
      return control.exchange(fmt::format("blob {}", rank));
    };
    auto other = std::async(std::launch::async, [&] { return meet(1, nullptr); });
    const std::vector<Member> members = meet(0, std::move(hub));
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[1].blob, "blob 1");
    EXPECT_EQ(other.get()[0].blob, "blob 0");
  }

  static bool is_open(Stream& stream) {
    std::string bytes;
    try {
      return stream.receive(bytes);
    } catch (const Error&) {
      return false;
    }
  }

  std::unique_ptr<Hub> hub_;
  Endpoint place_;
};

TEST_F(StrangersAtTheHub, ManyThatSayNothingDoNotKeepWorkersFromMeeting) {
  std::vector<Stream> idle;
  for (int i = 0; i < 2000; ++i) idle.push_back(connect());
  EXPECT_LE(count_open(idle, Strangers::kMostOfAddress),
            static_cast<ptrdiff_t>(Strangers::kMostOfAddress));
  EXPECT_FALSE(is_open(idle.front())) << "the oldest go first";
  expect_to_meet();
}

// An attacker on this machine can use any of 16 million addresses.
TEST_F(StrangersAtTheHub, LoopbackAddressesCountAsOne) {
  std::vector<Stream> idle = connect_from_many(200);
  EXPECT_LE(count_open(idle, Strangers::kMostOfAddress),
            static_cast<ptrdiff_t>(Strangers::kMostOfAddress));
  expect_to_meet();
}

TEST_F(StrangersAtTheHub, IdleOnesDoNotPushOutOneThatIsProvingItself) {
  const std::string begun = encode({FrameType::hello, std::string(1000, 'x')}).substr(0, 500);
  Stream slow = connect();
  slow.send_all(begun, Deadline::after(60));
  std::vector<Stream> idle = connect_from_many(600);
  count_open(idle, Strangers::kMostOfAddress);
  EXPECT_FALSE(is_open(idle.front()));
  EXPECT_TRUE(is_open(slow));
}

TEST_F(StrangersAtTheHub, NonsenseIsClosedAtOnce) {
  Stream web = connect();
  web.send_all("GET / HTTP/1.1\r\nHost: artel\r\n\r\n", Deadline::after(60));
  std::string bytes;
  const Deadline deadline = Deadline::after(60);
  while (web.receive_within(1, bytes) && !deadline.passed()) continue;
  EXPECT_FALSE(deadline.passed());
  // It was asked who it is, and told nothing else.
  FrameReader reader;
  reader.feed(bytes);
  EXPECT_EQ(reader.next().value().type, FrameType::challenge);
  EXPECT_FALSE(reader.next());
  expect_to_meet();
}

TEST_F(StrangersAtTheHub, HalfOfALongMessageIsNotKept) {
  // It says that nearly 16 MiB follow, and sends most of them.
  std::string begun = encode({FrameType::hello, std::string(kMaxFrameBytes - 1, 'x')});
  begun.resize(begun.size() - 1);
  Stream half = connect();
  EXPECT_THROW(half.send_all(begun, Deadline::after(60)), Error);
  expect_to_meet();
}

TEST_F(StrangersAtTheHub, ManyOfHalfMessagesAreNotKept) {
  std::string begun = encode({FrameType::hello, std::string(Link::kMostOfStrangers, 'x')});
  begun.resize(Link::kMostOfStrangers - (1 << 10));
  std::vector<Stream> half;
  for (size_t i = 0; i < Strangers::kMostOfAddress; ++i) {
    half.push_back(connect());
    half.back().send_all(begun, Deadline::after(60));
  }
  const Deadline deadline = Deadline::after(60);
  const auto still_open = [&] { return std::count_if(half.begin(), half.end(), is_open); };
  const auto most = static_cast<ptrdiff_t>(Strangers::kMostBytes / begun.size());
  while (still_open() > most && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(still_open(), most);
  expect_to_meet();
}

}  // namespace
}  // namespace artel::comm::control
