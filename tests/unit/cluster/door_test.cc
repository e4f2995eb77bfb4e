// Who is heard at a worker's door, and who is not.
#include "artel/cluster/door.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <thread>

#include "artel/base/error.h"
#include "artel/cluster/entrance.h"
#include "tests/support/error_of.h"

// A name server that does not answer `slow.example` until the test allows it.
namespace {
std::atomic<bool> name_was_asked{false}, name_may_be_told{false}, name_was_told{false};
}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  static const auto system =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (!node || std::string_view(node) != "slow.example")
    return system(node, service, hints, result);
  name_was_asked = true;
  const artel::Deadline deadline = artel::Deadline::after(20);
  while (!name_may_be_told && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  name_was_told = true;
  return system("127.0.0.1", service, hints, result);
}

namespace artel {
namespace {

using namespace comm::control;

Participant member(int number, const std::string& door) {
  return {.number = number, .host = "h", .process = 1, .door = door};
}

std::string error_of_leaving(const LeaveRequest& request) {
  return error_of([&] { ask_to_leave(request, Deadline::after(20)); });
}

class DoorInUse : public testing::TestWithParam<bool> {
 protected:
  Door door_{{.host = "127.0.0.1"}, "secret", GetParam()};

  void SetUp() override {
    door_.set_membership(0, {member(0, door_.address()), member(1, "127.0.0.1:1")}, 0, 2);
  }
};
INSTANTIATE_TEST_SUITE_P(Encrypted, DoorInUse, testing::Bool());

TEST_P(DoorInUse, NobodyIsDismissedWithoutTheToken) {
  const std::string error =
      error_of_leaving({.door = door_.address(), .token = "Secret", .encrypt = GetParam()});
  EXPECT_NE(error.find("wrong token"), error.npos) << error;
  EXPECT_FALSE(door_.dismissed());
}

TEST_P(DoorInUse, ANewcomerIsHeardWithTheTokenOnly) {
  std::thread newcomer([&] {
    Entrance entrance({.doors = {door_.address()},
                       .token = "secret",
                       .encrypt = GetParam(),
                       .request = {.purpose = DoorRequest::Purpose::join,
                                   .generation = -1,
                                   .self = member(-1, "127.0.0.1:2"),
                                   .introduction = "the same"}});
    EXPECT_EQ(entrance.wait().generation, 7);
  });
  const Deadline deadline = Deadline::after(60);
  while (door_.newcomers().empty() && !deadline.passed()) door_.wait(0.05);
  const std::vector<Door::Guest> guests = door_.newcomers();
  ASSERT_EQ(guests.size(), 1u);
  EXPECT_EQ(guests[0].request.introduction, "the same");
  door_.tell(guests[0].id, {FrameType::roster, to_body(Roster{.generation = 7})});
  newcomer.join();

  Entrance stranger(
      {.doors = {door_.address()},
       .token = "",
       .encrypt = GetParam(),
       .request = {.purpose = DoorRequest::Purpose::join, .generation = -1, .self = {}}});
  EXPECT_THROW(stranger.wait(), Error);
  EXPECT_TRUE(door_.newcomers().empty());
}

// It listens at each door, also if the first of them is closed.
TEST_P(DoorInUse, ANewcomerIsHeardBehindAClosedDoor) {
  std::thread newcomer([&] {
    Entrance entrance({.doors = {"127.0.0.1:1", door_.address()},
                       .token = "secret",
                       .encrypt = GetParam(),
                       .request = {.purpose = DoorRequest::Purpose::join,
                                   .generation = -1,
                                   .self = member(-1, "127.0.0.1:2"),
                                   .introduction = "the same"}});
    EXPECT_EQ(entrance.wait().generation, 7);
  });
  const Deadline deadline = Deadline::after(60);
  while (door_.newcomers().empty() && !deadline.passed()) door_.wait(0.05);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // it is still there
  const std::vector<Door::Guest> guests = door_.newcomers();
  EXPECT_EQ(guests.size(), 1u);
  for (const Door::Guest& guest : guests)
    door_.tell(guest.id, {FrameType::roster, to_body(Roster{.generation = 7})});
  newcomer.join();
}

// A member that waits for another one hears when that one has stepped outside.
TEST_P(DoorInUse, AMemberLearnsThatAnotherOneIsOutside) {
  Link caller(connect_to(parse_endpoint(door_.address()), Deadline::after(60)));
  caller.introduce(comm::RunSecret("secret", GetParam()), FrameType::request,
                   to_body(DoorRequest{.purpose = DoorRequest::Purpose::probe,
                                       .generation = 0,
                                       .self = member(1, "127.0.0.1:1")}));
  const Deadline deadline = Deadline::after(60);
  const auto awaits = [&](FrameType type) {
    for (bool heard = false; !heard && !caller.closed && !deadline.passed();) {
      caller.flush();
      caller.read([&](const Frame& frame) { heard |= frame.type == type; });
      if (heard) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  };
  EXPECT_TRUE(awaits(FrameType::beat));
  door_.set_membership(-1, {}, -1, 0);
  EXPECT_TRUE(awaits(FrameType::leave));
}

// Sends until the door hangs up; returns the bytes that went out.
size_t bytes_until_refused(const std::string& door, const std::string& first, size_t most) {
  comm::Stream stranger(connect_to(parse_endpoint(door), Deadline::after(60)));
  const std::string nothing = encode({FrameType::request, {}});
  std::string many = first;
  while (many.size() < (1 << 20)) many += nothing;
  for (size_t sent = 0; sent < most; sent += many.size()) try {
      stranger.send_all(many, Deadline::after(60));
    } catch (const Error&) {
      return sent;
    }
  return most;
}

TEST(Door, HangsUpOnOneThatItHasRefused) {
  Door door({.host = "127.0.0.1"}, "secret");
  door.set_membership(0, {member(0, door.address()), member(1, "127.0.0.1:1")}, 0, 2);
  constexpr size_t kFlood = 64 << 20;  // more than the buffers of a connection take
  for (const FrameType type : {FrameType::request, FrameType::hello, FrameType::beat})
    EXPECT_LT(bytes_until_refused(door.address(), encode({type, "who is there?"}), kFlood), kFlood);
  EXPECT_TRUE(door.guests().empty());
}

TEST_P(DoorInUse, OneThatEncryptsDifferentlyIsToldSo) {
  const std::string error =
      error_of_leaving({.door = door_.address(), .token = "secret", .encrypt = !GetParam()});
  EXPECT_NE(error.find("try the same cluster.encrypt"), error.npos) << error;
}

// Training and recovery use the door while its known port is looked up.
TEST(Door, IsNotLockedWhileANameServerIsAsked) {
  Door door({.host = "127.0.0.1"}, "secret");
  std::thread opening([&] { EXPECT_TRUE(door.open_also_at({.host = "slow.example", .port = 0})); });
  while (!name_was_asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(door.has_left(1));
  EXPECT_FALSE(name_was_told) << "the door was locked until the answer came";
  name_may_be_told = true;
  opening.join();
}

TEST(Door, AddressesAreResolvedOnce) {
  name_may_be_told = true;
  EXPECT_EQ(to_string(resolved({.host = "slow.example", .port = 7})), "127.0.0.1:7");
  EXPECT_EQ(to_string(resolved({.host = "::1", .port = 7})), "[::1]:7");
  EXPECT_EQ(to_string(resolved({.host = "@name"})), "@name");
}

TEST(Door, NeedsATokenWhereOthersCanReachIt) {
  EXPECT_THROW(Door({.host = "0.0.0.0"}, ""), Error);
  EXPECT_THROW(Door({.host = "127.0.0.1"}, ""), Error) << "other users can";
  EXPECT_NO_THROW(Door({.host = "@artel/door_test"}, "")) << "the kernel tells users apart";
}

}  // namespace
}  // namespace artel
