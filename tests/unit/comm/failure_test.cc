// Failure is an error, not a hang: the exact words on every rank.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <regex>
#include <stdexcept>

#include "artel/base/error.h"
#include "artel/base/host_name.h"
#include "artel/base/time.h"
#include "artel/comm/connection/handshake.h"
#include "artel/comm/shm/segment.h"
#include "ranks.h"
#include "tests/support/error_of.h"

namespace artel::comm {
namespace {

class Failure : public testing::TestWithParam<const char*> {
 protected:
  GroupOptions options() const { return {.transport = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Transport, Failure,
                         testing::Values("shm", "gloo", "gloo by TCP", "tcp by TCP",
                                         "tcp, encrypted"));

TEST_P(Failure, RanksThatDisagreeSeeBothSides) {
  const auto errors = run_ranks(
      3,
      [](Group& group) {
        std::vector<float> data(group.rank() == 1 ? 5000 : 6000);
        group.barrier();
        if (group.rank() == 1)
          group.broadcast(bytes(data), 0);
        else
          group.all_reduce(bytes(data), ElementType::f32, {}, {.label = "bucket 5"});
      },
      options());
  const std::string sides =
      "[comm] ranks of group 0 disagree: rank 0 calls all_reduce #3 of 24000 bytes of f32 (sum) "
      "'bucket 5', rank 1 calls broadcast #3 of 20000 bytes of u8 with root 0; make the same calls "
      "in the same order on every rank";
  const std::string other_sides =
      "[comm] ranks of group 0 disagree: rank 1 calls broadcast #3 of 20000 bytes of u8 with root "
      "0, rank 2 calls all_reduce #3 of 24000 bytes of f32 (sum) 'bucket 5'; make the same calls "
      "in the same order on every rank";
  for (const std::string& error : errors)
    EXPECT_TRUE(error.starts_with(sides) || error.starts_with(other_sides)) << error;
}

TEST_P(Failure, ATimeoutNamesWhomItWaitedForAndReachesEverybody) {
  const auto errors = run_ranks(
      3,
      [](Group& group) {
        group.set_phase("test after step 1234567, data 1, stage 2, tensor 3");
        group.barrier();
        if (group.rank() == 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(4000));
          group.barrier();
          return;
        }
        // With messages, rank 1 waits for rank 0, which waits for rank 2 and should give up first.
        if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
        std::vector<float> data(1 << 20);
        group.all_reduce(bytes(data), ElementType::f32, {}, {.label = "bucket 5", .timeout = 2});
      },
      options());
  const std::regex expected(
      R"(\[comm\] all_reduce #3 'bucket 5', 4 MiB: gave up after \d\.\d s of waiting for rank 2 on )"
      R"(host )" +
      host_name() +
      R"(, last seen \d\.\d s ago in test after step 1234567, data 1, stage 2, tensor 3)"
      R"(( \(reported by rank [01]\))?)");
  int direct = 0;
  for (const std::string& error : errors) direct += std::regex_match(error, expected) ? 1 : 0;
  EXPECT_GE(direct, 2) << errors[0] << "\n" << errors[1] << "\n" << errors[2];
  EXPECT_NE(errors[2], "");
}

TEST_P(Failure, WhatABackgroundThreadThrowsReachesWhoeverUsesTheGroup) {
  std::atomic<bool> formed = false;
  GroupOptions broken = options();
  broken.vitals = [&] {
    if (formed) throw std::runtime_error("no vitals today");
    return std::string();
  };
  const auto errors = run_ranks(
      2,
      [&](Group& group) {
        group.barrier();
        formed = true;
        for (const Deadline deadline = Deadline::after(30); !deadline.passed();) {
          group.barrier();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      },
      broken);
  for (const std::string& error : errors)
    EXPECT_NE(error.find("no vitals today"), std::string::npos) << error;
}

TEST_P(Failure, TheWatchdogNamesTheSlowPeer) {
  std::mutex mutex;
  std::vector<std::string> lines;
  GroupOptions slow = options();
  slow.watch = {.after = 1, .report = [&](const std::string& line) {
                  const std::lock_guard lock(mutex);
                  lines.push_back(line);
                }};
  with_ranks(
      2,
      [](Group& group) {
        group.set_phase("backward");
        group.barrier();
        if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        std::vector<float> data(1 << 22);
        group.all_reduce(bytes(data), ElementType::f32, {}, {.label = "bucket 5"});
      },
      slow);
  const std::regex expected(
      R"(all_reduce #3 'bucket 5', 16 MiB: waiting \d s for rank 1 on host )" + host_name() +
      R"(, last seen \d\.\d s ago in backward)");
  // On a loaded machine the first reminder may come before rank 1 has told its phase.
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return std::regex_match(line, expected);
  })) << ::testing::PrintToString(lines);
}

TEST_P(Failure, TheFirstCauseIsWhatTheOthersSee) {
  const auto errors = run_ranks(
      3,
      [](Group& group) {
        group.barrier();
        if (group.rank() == 1) {
          group.abort("the data set is empty");
          fail(ErrorKind::not_found, "[data] the data set is empty");
        }
        std::vector<float> data(100);
        group.all_reduce(bytes(data), ElementType::f32);
      },
      options());
  EXPECT_EQ(errors[0], "[comm] the data set is empty (reported by rank 1)");
  EXPECT_EQ(errors[1], "[data] the data set is empty");
  EXPECT_EQ(errors[2], errors[0]);
}

TEST_P(Failure, ARankThatHasLeftIsNotWaitedFor) {
  const auto errors = run_ranks(
      2,
      [](Group& group) {
        group.barrier();
        if (group.rank() == 0) return;
        std::vector<float> data(100);
        group.all_reduce(bytes(data), ElementType::f32);
      },
      options());
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "[comm] all_reduce #3, 400 B: rank 0 has left the group");
}

TEST_P(Failure, AnErrorOnTheGroupsThreadReachesTheWaiter) {
  const auto errors = run_ranks(
      2,
      [](Group& group) {
        std::vector<float> data(3);
        Handle handle = group.start(
            [&](Group& self) { self.all_reduce(bytes(data).subspan(1), ElementType::f32); });
        handle.wait(Deadline::after(10));
      },
      options());
  EXPECT_EQ(errors[0], "[comm] all_reduce: got 11 bytes, expected a multiple of 4 for f32");
}

TEST_P(Failure, AMessageThatNeverComesTimesOut) {
  with_ranks(
      2,
      [](Group& group) {
        if (group.rank() == 0) {
          std::vector<float> data(3);
          Handle handle = group.receive(1, 7, bytes(data));
          try {
            handle.wait(Deadline::after(0.2));
            ADD_FAILURE();
          } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::timeout);
          }
          group.barrier();
          handle.wait(Deadline::after(10));  // it is still on its way
          EXPECT_EQ(data, (std::vector<float>{1, 2, 3}));
        } else {
          group.barrier();
          std::vector<float> data{1, 2, 3};
          group.send(0, 7, bytes(data)).wait(Deadline::after(10));
        }
      },
      options());
}

std::string error_of_connecting(const GroupOptions& options) {
  return error_of([&] { Group::connect(options); });
}

// The errors of a rendezvous in which rank 1 has other options than rank 0.
std::vector<std::string> mismatched(const GroupOptions& zero, const GroupOptions& one) {
  std::vector<std::string> errors(2);
  const auto attempt = [&](int rank, const GroupOptions& options) {
    errors[static_cast<size_t>(rank)] = error_of_connecting(options);
  };
  std::thread other([&] { attempt(1, one); });
  attempt(0, zero);
  other.join();
  return errors;
}

TEST(Rendezvous, WrongTokensAndSizesAreToldApart) {
  for (const std::string transport : {"shm", "gloo", "tcp"}) {
    const GroupOptions zero{.transport = transport,
                            .rank = 0,
                            .size = 2,
                            .address = transport == "shm" ? unique_name() : free_address(),
                            .token = "right",
                            .join_timeout = 1,
                            .arena_bytes = 1 << 20};
    GroupOptions one = zero;
    one.rank = 1;
    one.token = "wrong";
    EXPECT_TRUE(
        std::regex_match(mismatched(zero, one)[1], std::regex(".*refused rank 1: wrong token.*")));
    one.token = "right";
    one.size = 3;
    EXPECT_TRUE(
        std::regex_match(mismatched(zero, one)[1],
                         std::regex(".*refused rank 1: got a group of 3 ranks, expected 2")));
  }
}

// Callers distinguish it by its type, not by its words.
TEST(Rendezvous, AWrongTokenIsAnErrorOfItsOwn) {
  for (const std::string transport : {"shm", "gloo", "tcp", "tcp, encrypted"}) {
    GroupOptions options{.transport = transport.substr(0, transport.find(',')),
                         .rank = 0,
                         .size = 2,
                         .address = transport == "shm" ? unique_name() : free_address(),
                         .token = "right",
                         .encrypt = transport.ends_with("encrypted"),
                         .join_timeout = 1,
                         .arena_bytes = 1 << 20};
    std::thread first([options] { error_of_connecting(options); });
    options.rank = 1;
    options.token = "wrong";
    EXPECT_THROW(Group::connect(options), WrongToken) << transport;
    first.join();
  }
}

TEST(Rendezvous, NetworkProblemsAreToldApart) {
  GroupOptions options{.transport = "gloo",
                       .rank = 1,
                       .size = 2,
                       .address = free_address(),
                       .token = "t",
                       .join_timeout = 0.3};
  EXPECT_EQ(error_of_connecting(options),
            fmt::format("[comm] rank 0 at {} cannot be reached: the host is up but refuses the "
                        "connection: rank 0 is not listening there, or a firewall rejects it",
                        options.address));
  options.address = "no.such.host.invalid:1234";
  EXPECT_TRUE(error_of_connecting(options).starts_with(
      "[comm] host 'no.such.host.invalid' cannot be resolved: "));
  options.address = "127.0.0.1:1234";
  options.interface = "eth77";
  EXPECT_TRUE(error_of_connecting(options).starts_with(
      "[comm] network interface: got 'eth77', expected one of lo (127.0.0.1)"));
  options = {.transport = "gloo", .rank = 0, .size = 2, .address = "192.0.2.1:1234", .token = "t"};
  EXPECT_EQ(
      error_of_connecting(options),
      "[comm] 192.0.2.1:1234 is not an address of this machine, but rank 0 must listen there; "
      "try the address of the machine that runs rank 0");
}

TEST(Rendezvous, AMissingRankIsATimeoutThatCounts) {
  const std::string name = unique_name();
  EXPECT_EQ(error_of_connecting({.rank = 0, .size = 3, .address = name, .join_timeout = 0.2}),
            fmt::format("[comm shm] group '{}': got 1 of 3 ranks before the deadline", name));
  EXPECT_EQ(error_of_connecting({.rank = 1, .size = 3, .address = name, .join_timeout = 0.2}),
            fmt::format("[comm shm] group '{}': rank 0 did not appear on this machine before the "
                        "deadline; try transport gloo for several machines",
                        name));
  const std::string address = free_address();
  EXPECT_EQ(error_of_connecting({.transport = "gloo",
                                 .rank = 0,
                                 .size = 2,
                                 .address = address,
                                 .token = "t",
                                 .join_timeout = 2}),
            fmt::format("[comm] group at {}: not all of the 2 ranks joined before the deadline",
                        address));
}

// Gloo asserts that a connection is open, which another thread may close when all give up.
TEST(Rendezvous, WhateverGivingUpDoesToConnectionsIsACommunicationError) {
  constexpr int kRounds = 20, kRanks = 6;
  for (int round = 0; round < kRounds; ++round) {
    const auto end = Clock::now() + std::chrono::milliseconds(round);
    GroupOptions options{.transport = "gloo by TCP",
                         .size = kRanks,
                         .address = free_address(),
                         .join_timeout = 1,
                         .while_joining = [&] {
                           require(Clock::now() < end, ErrorKind::communication, "given up");
                         }};
    std::vector<std::thread> threads;
    for (options.rank = 0; options.rank < kRanks; ++options.rank)
      threads.emplace_back([own = options] {
        try {
          connect(own);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::communication) << error.what();
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

// Rank 0 may have died before it listens, which others know who have met it.
TEST(Rendezvous, WaitingForRankZeroCanBeGivenUp) {
  for (const char* transport : {"gloo", "tcp"})
    EXPECT_EQ(error_of_connecting(
                  {.transport = transport,
                   .rank = 1,
                   .size = 2,
                   .address = free_address(),
                   .token = "t",
                   .join_timeout = 100,
                   .while_joining = [] { fail(ErrorKind::communication, "worker 0 was lost"); }}),
              "worker 0 was lost");
}

// Gloo would end the process; libraries find the function as it is found here.
TEST(Rendezvous, APeerThatIsGoneHasAnEmptyName) {
  const auto found = reinterpret_cast<decltype(&getpeername)>(dlsym(RTLD_DEFAULT, "getpeername"));
  const FileHandle alone(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name = {};
  socklen_t bytes = sizeof name;
  ASSERT_EQ(found(alone.get(), reinterpret_cast<sockaddr*>(&name), &bytes), 0);
  EXPECT_EQ(name.sin_family, AF_INET);
  EXPECT_EQ(name.sin_port, 0);
  EXPECT_EQ(found(-1, reinterpret_cast<sockaddr*>(&name), &bytes), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(Rendezvous, UnknownTransportsAreNamed) {
  EXPECT_EQ(
      error_of_connecting({.transport = "globo"}),
      "[comm] transport: got 'globo', expected one of shm, gloo, tcp, mpi; did you mean 'gloo'?");
}

// From the moment at which all have arrived, before anybody has said anything.
TEST(SharedMemory, RanksThatHaveArrivedHaveBeenSeen) {
  const std::string name = unique_name();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      const shm::Segment segment(
          {.name = name, .token = "seen", .rank = rank, .size = 3, .arena_bytes = 1 << 20});
      for (int peer = 0; peer < 3; ++peer) EXPECT_NE(segment.card(peer).last_seen, 0);
    });
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace artel::comm
