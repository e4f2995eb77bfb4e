// Which paths between members count as cut, and who leaves then.
#include "artel/cluster/cut_paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "artel/cluster/door.h"
#include "artel/comm/control/socket.h"

namespace artel {
namespace {

using namespace comm::control;

std::vector<Participant> workers_and_servers(int workers, int servers) {
  std::vector<Participant> all;
  for (int number = 0; number < workers + servers; ++number)
    all.push_back({.number = number, .server = number < workers ? -1 : number - workers});
  return all;
}

TEST(MembersToLeave, TheHigherRankOfTwoLeaves) {
  EXPECT_EQ(members_to_leave(workers_and_servers(3, 0), {{1, 2}}), std::vector{2});
}

TEST(MembersToLeave, TheOneThatReachesTheFewestLeaves) {
  EXPECT_EQ(members_to_leave(workers_and_servers(5, 0), {{1, 2}, {1, 3}, {1, 4}}), std::vector{1});
}

TEST(MembersToLeave, OneOfTwoSidesLeaves) {
  EXPECT_EQ(members_to_leave(workers_and_servers(5, 0), {{1, 3}, {1, 4}, {2, 3}, {2, 4}}),
            (std::vector{4, 3}));
}

TEST(MembersToLeave, AWorkerLeavesBeforeAServer) {
  EXPECT_EQ(members_to_leave(workers_and_servers(3, 1), {{2, 3}}), std::vector{2});
}

TEST(MembersToLeave, TheFirstAndThoseWhoAreGoneDoNotCount) {
  EXPECT_TRUE(members_to_leave(workers_and_servers(3, 0), {{0, 2}, {1, 7}}).empty());
  EXPECT_TRUE(members_to_leave(workers_and_servers(3, 0), {}).empty());
}

TEST(CutPaths, ADoorThatDoesNotAnswerIsTold) {
  Door own({.host = "127.0.0.1"}, "secret"), alive({.host = "127.0.0.1"}, "secret");
  const comm::FileHandle mute = listen_at({.host = "127.0.0.1"});
  const std::string nobody = to_string({.host = "127.0.0.1", .port = port_of(mute.get())});
  comm::FileHandle freed = listen_at({.host = "127.0.0.1"});
  const std::string closed = to_string({.host = "127.0.0.1", .port = port_of(freed.get())});
  freed = comm::FileHandle();
  const std::vector<Participant> members = {
      {.number = 0, .host = "a", .process = 1, .door = own.address()},
      {.number = 1, .host = "b", .process = 2, .door = alive.address()},
      {.number = 2, .host = "c", .process = 3, .door = nobody},
      {.number = 3, .host = "d", .process = 4, .door = closed}};
  alive.set_membership(0, members, 1, 4);
  CutPaths paths(comm::RunSecret("secret"));
  paths.watch(members, 0);
  EXPECT_TRUE(paths.unanswered(0).empty()) << "nobody has looked";
  constexpr double kSeconds = 3;  // six beats of a door
  const Deadline deadline = Deadline::after(60);
  while (!paths.is_cut({.host = "c", .process = 3}, kSeconds) && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(paths.unanswered(kSeconds), std::set{2});
  EXPECT_FALSE(paths.is_cut({.host = "b", .process = 2}, kSeconds));
  EXPECT_FALSE(paths.is_cut({.host = "elsewhere", .process = 3}, kSeconds));
  // A member that has never been heard from is silent, which is a different case.
  EXPECT_FALSE(paths.is_cut({.host = "c", .process = 3, .silent_seconds = 1e6}, kSeconds));
  EXPECT_TRUE(paths.unanswered(kSeconds, {{2, 1e6}}).empty());
  paths.watch({members[0], members[1]}, 0);
  paths.look();
  EXPECT_TRUE(paths.unanswered(kSeconds).empty());
}

TEST(CutPaths, APathWithinAMachineIsNeverCut) {
  const std::string door = "@artel/cut_paths_test_" + std::to_string(::getpid());
  const comm::FileHandle mute = listen_at(parse_endpoint(door));
  CutPaths paths(comm::RunSecret("secret"));
  paths.watch({{.number = 0, .host = "a", .process = 1, .door = "127.0.0.1:1"},
               {.number = 1, .host = "a", .process = 2, .door = door}},
              0);
  paths.look();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  paths.look();
  EXPECT_TRUE(paths.unanswered(0.01).empty());
  EXPECT_FALSE(paths.is_cut({.host = "a", .process = 2}, 0.01));
}

}  // namespace
}  // namespace artel
