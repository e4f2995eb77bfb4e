// Every collective on shared memory and on messages through it, with threads as ranks.
#include "artel/comm/group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "artel/base/random.h"
#include "collectives.h"
#include "ranks.h"

namespace artel::comm {
namespace {

class Collectives : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(World, Collectives, testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST_P(Collectives, AllOnSharedMemory) {
  with_ranks(GetParam(), [](Group& group) { check_every_collective(group, Algorithm::automatic); });
}

TEST_P(Collectives, AllOnMessages) {
  with_ranks(GetParam(), [](Group& group) {
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::tree, Algorithm::halving, Algorithm::hierarchical})
      check_every_collective(group, algorithm);
  });
}

TEST_P(Collectives, AllOnGloo) {
  for (const char* transport : {"gloo", "gloo by TCP", "tcp by TCP", "tcp, encrypted"})
    with_ranks(GetParam(),
               [](Group& group) {
                 check_every_collective(group, Algorithm::automatic);
                 check_reductions(group, 1000, {.algorithm = Algorithm::direct});
               },
               {.transport = transport});
}

// Messages through shared memory and through TCP in one operation, longer than either takes at
// once: one kind makes progress while a rank waits for the other.
TEST_P(Collectives, AllOnGlooWithNeighbours) {
  with_ranks(GetParam(),
             [](Group& group) {
               for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::ring})
                 check_every_collective(group, algorithm);
               check_reductions(group, 500'001, {.algorithm = Algorithm::hierarchical});
             },
             {.transport = "gloo on two machines"});
  with_ranks(GetParam(),
             [](Group& group) {
               check_every_collective(group, Algorithm::hierarchical);
               check_reductions(group, 500'001, {.algorithm = Algorithm::hierarchical});
             },
             {.transport = "tcp on two machines"});
}

TEST_P(Collectives, BuffersInTheArena) {
  with_ranks(GetParam(), [](Group& group) {
    const size_t count = 100'003;
    const SharedBytes memory = group.allocate(count * sizeof(float));
    auto* values = reinterpret_cast<float*>(memory.get());
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 101 + group.rank());
      group.all_reduce({memory.get(), count * sizeof(float)}, ElementType::f32);
      const int size = group.size();
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(values[i], static_cast<float>(size * (i % 101) + size * (size - 1) / 2));
    }
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(group.rank());
    group.broadcast({memory.get(), count * sizeof(float)}, group.size() - 1);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], static_cast<float>(group.size() - 1));
  });
}

TEST(Group, SomeBuffersInTheArenaAndSomeNot) {
  with_ranks(3, [](Group& group) {
    const size_t count = 300'001;
    const SharedBytes memory = group.allocate(count * sizeof(float));
    std::vector<float> own(count);
    float* values = group.rank() == 1 ? reinterpret_cast<float*>(memory.get()) : own.data();
    std::fill_n(values, count, 1.0f + static_cast<float>(group.rank()));
    group.all_reduce({reinterpret_cast<std::byte*>(values), count * sizeof(float)},
                     ElementType::f32, ReductionKind::mean);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], 2.0f);
  });
}

// Longer than what is received ahead, with lanes that make one or two partial sums on a rank.
TEST(Group, LanesOfManySegments) {
  for (const int size : {2, 3})
    for (const char* transport :
         {"shm", "gloo by TCP", "gloo on two machines", "tcp on two machines", "tcp, encrypted"})
      with_ranks(
          size,
          [](Group& group) { check_lanes(group, 3, 2'500'003, {.algorithm = Algorithm::ring}); },
          {.transport = transport});
}

TEST(Group, RingOfTheLectureExample) {
  with_ranks(3, [](Group& group) {
    const std::vector<std::vector<int32_t>> inputs{
        {5, 13, 8, 19, 42, 1}, {9, 27, 3, 15, 8, 4}, {8, 11, 4, 2, 7, 7}};
    std::vector<int32_t> data = inputs[group.rank()];
    group.all_reduce(bytes(data), ElementType::i32, {}, {.algorithm = Algorithm::ring});
    EXPECT_EQ(data, (std::vector<int32_t>{22, 51, 15, 36, 57, 12}));
  });
}

TEST(Group, GlooHasACollectiveOfItsOwn) {
  with_ranks(3,
             [](Group& group) {
               std::vector<int16_t> data(1000, static_cast<int16_t>(group.rank() + 1));
               group.all_reduce(bytes(data), ElementType::i16, ReductionKind::mean,
                                {.algorithm = Algorithm::native});
               EXPECT_EQ(data, std::vector<int16_t>(1000, 2));
             },
             {.transport = "gloo"});
}

TEST(Group, MessagesMatchByTagAndKeepTheirOrder) {
  with_ranks(2, [](Group& group) {
    const int peer = 1 - group.rank();
    std::vector<std::vector<int>> out, in(6, std::vector<int>(200'000));
    for (int i = 0; i < 6; ++i) out.emplace_back(200'000, 10 * group.rank() + i);
    std::vector<Handle> handles;
    for (int i = 0; i < 6; ++i) handles.push_back(group.send(peer, i % 2, bytes(out[i])));
    for (int i = 5; i >= 0; --i) handles.push_back(group.receive(peer, i % 2, bytes(in[i])));
    for (Handle& handle : handles) handle.wait(Deadline::after(20));
    // Posted in the order 5, 4, 3, 2, 1, 0: odd tags get 1, 3, 5, even tags 0, 2, 4.
    EXPECT_EQ(in[5], std::vector<int>(200'000, 10 * peer + 1));
    EXPECT_EQ(in[1], std::vector<int>(200'000, 10 * peer + 5));
    EXPECT_EQ(in[4], std::vector<int>(200'000, 10 * peer + 0));
    EXPECT_EQ(in[0], std::vector<int>(200'000, 10 * peer + 4));
  });
}

TEST(Group, StartedOperationsRunInOrderBesideTheCaller) {
  with_ranks(3, [](Group& group) {
    std::vector<std::vector<int64_t>> buckets;
    for (int i = 0; i < 20; ++i) buckets.emplace_back(1000 + i, i + group.rank());
    std::vector<Handle> handles;
    for (auto& bucket : buckets)
      handles.push_back(group.start(
          [&bucket](Group& self) { self.all_reduce(bytes(bucket), ElementType::i64); }));
    group.barrier();  // takes its turn behind them
    for (int i = 0; i < 20; ++i) {
      handles[i].wait(Deadline::after(20));
      EXPECT_EQ(buckets[i], std::vector<int64_t>(1000 + i, 3 * i + 3));
    }
  });
}

TEST(Group, SplitsAreIndependentGroups) {
  with_ranks(7, [](Group& group) {
    Group parity = group.split(group.rank() % 2);
    Group reversed = group.split(0, -group.rank());
    Group quarter = parity.split(parity.rank() / 2);
    EXPECT_EQ(parity.size(), group.rank() % 2 == 0 ? 4 : 3);
    EXPECT_EQ(parity.rank(), group.rank() / 2);
    EXPECT_EQ(reversed.rank(), 6 - group.rank());
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<int> all{1}, half{1}, part{1};
      // On three groups at once, each on its own thread.
      Handle first = reversed.start([&](Group& g) { g.all_reduce(bytes(all), ElementType::i32); });
      Handle second = parity.start([&](Group& g) { g.all_reduce(bytes(half), ElementType::i32); });
      quarter.all_reduce(bytes(part), ElementType::i32);
      first.wait(Deadline::after(20));
      second.wait(Deadline::after(20));
      EXPECT_EQ(all[0], 7);
      EXPECT_EQ(half[0], parity.size());
      EXPECT_EQ(part[0], quarter.size());
    }
  });
}

TEST(Group, RandomProgramsOfMixedCollectivesOnSeveralGroups) {
  for (uint64_t seed = 0; seed < 4; ++seed)
    with_ranks(5, [seed](Group& group) {
      Group other = group.split(group.rank() < 2 ? 0 : 1);
      Random random{seed};  // the same program on all ranks
      std::vector<Handle> handles;
      std::vector<std::unique_ptr<std::vector<int32_t>>> buffers;
      for (int step = 0; step < 60; ++step) {
        Group& target = random.below(2) == 0 ? group : other;
        const auto kind = random.below(4);
        const auto algorithm = static_cast<Algorithm>(random.below(6));
        buffers.push_back(std::make_unique<std::vector<int32_t>>(random.below(40'000), 1));
        std::vector<int32_t>& data = *buffers.back();
        handles.push_back(target.start([&data, kind, algorithm](Group& self) {
          const Call call{.algorithm = algorithm};
          std::vector<int32_t> expected(data.size(), 1);
          if (kind == 0) {
            self.all_reduce(bytes(data), ElementType::i32, {}, call);
            expected.assign(data.size(), self.size());
          } else if (kind == 1) {
            self.broadcast(bytes(data), self.size() - 1, call);
          } else if (kind == 2) {
            self.barrier(call);
          } else {
            self.reduce(bytes(data), bytes(data), ElementType::i32, 0, {}, call);
            if (self.rank() == 0) expected.assign(data.size(), self.size());
          }
          EXPECT_EQ(data, expected);
        }));
      }
      for (Handle& handle : handles) handle.wait(Deadline::after(60));
    });
}

// Rank 0 hears what the others say about themselves, whatever they are connected by.
TEST(Group, VitalsReachRankZero) {
  for (const char* transport : {"shm", "gloo", "gloo by TCP", "tcp, encrypted"}) {
    std::atomic<int> next{1};
    const GroupOptions options = {.transport = transport, .vitals = [&next] {
                                    return fmt::format("reading {}", next.fetch_add(1));
                                  }};
    with_ranks(
        3,
        [](Group& group) {
          const Deadline deadline = Deadline::after(30);
          const auto heard = [&] {
            for (int peer = 1; peer < group.size(); ++peer)
              if (!group.status(peer).vitals.starts_with("reading ")) return false;
            return true;
          };
          while (group.rank() == 0 && !heard() && !deadline.passed())
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          EXPECT_TRUE(group.rank() != 0 || heard()) << group.transport();
          group.barrier();
        },
        options);
  }
}

}  // namespace
}  // namespace artel::comm
