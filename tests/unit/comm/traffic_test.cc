// Counters of bytes and messages, on every transport.
#include <gtest/gtest.h>

#include "collectives.h"
#include "ranks.h"

namespace artel::comm {
namespace {

constexpr size_t kBytes = 1 << 20;

// Framing per message: more than any transport adds.
constexpr int64_t kHead = 64;

class TrafficOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transport, TrafficOf,
                         testing::Values("shm", "gloo", "gloo by TCP", "tcp", "tcp on two machines",
                                         "tcp, encrypted"));

GroupOptions options_of(const char* transport) {
  return {.transport = transport, .token = "counted"};
}

TEST_P(TrafficOf, CountsMessagesByPeerAndDirection) {
  with_ranks(
      3,
      [](Group& group) {
        // Rank 0 sends one message to rank 1 and three to rank 2; nothing comes back.
        std::vector<std::byte> data(kBytes);
        std::vector<Traffic> before;
        for (int peer = 0; peer < 3; ++peer) before.push_back(group.traffic(peer));
        const auto change = [&](int peer) {
          Traffic traffic = group.traffic(peer);
          traffic -= before[peer];
          return traffic;
        };
        const auto exchange = [&](int from, int to, uint32_t count) {
          for (uint32_t i = 0; i < count; ++i) {
            if (group.rank() == from) group.send(to, i, data).wait(Deadline::after(20));
            if (group.rank() == to) group.receive(from, i, data).wait(Deadline::after(20));
          }
        };
        exchange(0, 1, 1);
        exchange(0, 2, 3);
        const int64_t bytes = kBytes;
        if (group.rank() == 0) {
          EXPECT_EQ(change(1).sent_messages, 1);
          EXPECT_EQ(change(2).sent_messages, 3);
          EXPECT_GE(change(1).sent_bytes, bytes);
          EXPECT_LE(change(1).sent_bytes, bytes + kHead);
          EXPECT_GE(change(2).sent_bytes, 3 * bytes);
          EXPECT_LE(change(2).sent_bytes, 3 * (bytes + kHead));
          EXPECT_EQ(change(1).received_messages + change(2).received_messages, 0);
          EXPECT_LE(change(1).received_bytes + change(2).received_bytes, 4 * kHead);
        } else {
          const int64_t messages = group.rank() == 1 ? 1 : 3;
          EXPECT_EQ(change(0).received_messages, messages);
          EXPECT_GE(change(0).received_bytes, messages * bytes);
          EXPECT_LE(change(0).received_bytes, messages * (bytes + kHead));
          EXPECT_LE(change(0).sent_bytes, messages * kHead);
          EXPECT_EQ(change(3 - group.rank()), Traffic());
        }
      },
      options_of(GetParam()));
}

// All ranks together receive what they send, and an all_reduce takes 2(N-1) times its bytes.
TEST_P(TrafficOf, AddsUpOverRanks) {
  constexpr int kRanks = 3;
  std::vector<Traffic> of(kRanks);
  with_ranks(
      kRanks,
      [&](Group& group) {
        const SharedBytes memory = group.allocate(kBytes);
        std::byte* const partial = memory.get();
        // Before the barrier: after it, a message of a faster rank may already have been counted.
        const Traffic before = group.traffic();
        group.barrier();
        group.all_reduce({memory.get(), kBytes}, ElementType::f32);
        group.lane_reduce(LaneLayout::even(kRanks, kRanks), {&partial, 1}, {memory.get(), kBytes},
                          ElementType::f32);
        Traffic& own = of[group.rank()] = group.traffic();
        own -= before;
        group.barrier();
      },
      options_of(GetParam()));
  Traffic all;
  for (const Traffic& traffic : of) all += traffic;
  const int64_t expected = 2 * 2 * (kRanks - 1) * static_cast<int64_t>(kBytes);
  EXPECT_GE(all.sent_bytes, expected);
  // Hosts whose lanes are no subtree send more.
  if (GetParam() != std::string_view("tcp on two machines")) {
    EXPECT_LE(all.sent_bytes, expected + expected / 100);
  }
  EXPECT_NEAR(static_cast<double>(all.received_bytes), static_cast<double>(all.sent_bytes),
              static_cast<double>(expected) / 100);
}

TEST(Traffic, OfAGroupThatWasSplitOffIsThatOfItsTransport) {
  with_ranks(4, [](Group& group) {
    Group half = group.split(group.rank() % 2);
    const Traffic before = group.traffic();
    std::vector<std::byte> data(kBytes);
    if (half.rank() == 0) half.send(1, 0, data).wait(Deadline::after(20));
    if (half.rank() == 1) half.receive(0, 0, data).wait(Deadline::after(20));
    Traffic during = group.traffic();
    during -= before;
    EXPECT_EQ(during.sent_messages, half.rank() == 0 ? 1 : 0);
    EXPECT_EQ(during.received_messages, half.rank() == 1 ? 1 : 0);
    EXPECT_EQ(half.traffic(),
              group.traffic(group.rank() < 2 ? group.rank() + 2 : group.rank() - 2));
  });
}

}  // namespace
}  // namespace artel::comm
