#include "artel/ps/cut.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "tests/unit/ps/servers.h"

namespace artel::ps {
namespace {

TEST(Cut, AdmitsContributionsThatHaveBegun) {
  Cut cut({4, 4});
  cut.contribute(0, 5);
  EXPECT_TRUE(cut.admits(0, 6));
  cut.set({});
  EXPECT_EQ(cut.iterations(), (std::vector<int64_t>{5, 4}));
  EXPECT_TRUE(cut.admits(0, 5));
  EXPECT_FALSE(cut.admits(0, 6));
  EXPECT_FALSE(cut.admits(1, 5));
  cut.set(std::vector<int64_t>{3, 6});
  EXPECT_EQ(cut.iterations(), (std::vector<int64_t>{5, 6}));
  EXPECT_TRUE(cut.admits(1, 6));
  EXPECT_THROW(cut.set(std::vector<int64_t>{1}), Error);
  cut.lift();
  EXPECT_TRUE(cut.admits(0, 6));
}

TEST(Cut, IsReachedWhenAllThatArePresentHaveFinished) {
  DelayClock clock(2, std::nullopt, 4);
  Cut cut({4, 4});
  cut.contribute(0, 5);
  cut.set(std::vector<int64_t>{0, 5});
  EXPECT_FALSE(cut.reached(clock));
  clock.finish(0, 5);
  EXPECT_FALSE(cut.reached(clock));
  clock.drop(1);
  EXPECT_TRUE(cut.reached(clock));
}

// Worker 0 reads two servers while three others push as fast as they can. All keys of one cut have
// had exactly the pushes that the cut tells of.
TEST(Cut, IsTheSameOnAllServers) {
  for (const char* transport : {"shm", "gloo"}) {
    ps::Setup setup = weights_of(64, {{"name", "sgd"}});
    setup.together = false;
    setup.delay.reset();
    setup.updates = 7;
    with_servers({.workers = 4, .servers = 2, .keys = 64, .setup = setup, .transport = transport},
                 [](Client& client, comm::Group&) {
                   const std::vector<float> gradient(64, 1);
                   if (client.worker() > 0) {
                     for (int iteration = 1; iteration <= 200; ++iteration)
                       client.run({.kind = Kind::push,
                                   .flags = finishes,
                                   .iteration = iteration,
                                   .keys = {0, 64},
                                   .values = {gradient.data()},
                                   .learning_rate = 1});
                     return;
                   }
                   for (int i = 0; i < 20; ++i) {
                     const Frozen frozen = client.freeze();
                     const std::vector<float> values = pull_all(client);
                     client.thaw();
                     const int64_t pushes =
                         frozen.finished[1] + frozen.finished[2] + frozen.finished[3];
                     EXPECT_EQ(frozen.updates, 7 + pushes);
                     EXPECT_EQ(values, std::vector<float>(64, static_cast<float>(-pushes)));
                   }
                 });
  }
}

// A push in two messages is one update: between them other workers may push.
TEST(KeptRange, CountsUpdates) {
  ps::Setup setup = weights_of(8, {{"name", "adam"}});
  setup.keys = {0, 8};
  setup.updates = 10;
  const Shard::Allocate allocate = [](size_t bytes) {
    return comm::SharedBytes(new std::byte[bytes](), std::default_delete<std::byte[]>());
  };
  KeptRange range(setup, {}, allocate);
  const auto push = [](KeptRange& to, int worker, int64_t iteration, KeyRange keys) {
    const int64_t number = to.update_number(worker, iteration);
    to.note({.worker = worker, .iteration = iteration, .keys = keys, .step = {number}}, "");
    return number;
  };
  EXPECT_EQ(push(range, 0, 1, {0, 4}), 11);
  EXPECT_EQ(push(range, 1, 1, {0, 4}), 12);
  EXPECT_EQ(push(range, 0, 1, {4, 8}), 11);
  push(range, 0, 2, {0, 0});  // a worker without samples
  EXPECT_EQ(range.updates(), 12);
  EXPECT_EQ(push(range, 0, 3, {0, 8}), 13);
  // Another server takes over in the middle of an iteration.
  KeptRange copy(setup, {}, allocate);
  copy.restore_log(range.log_text());
  EXPECT_EQ(copy.updates(), 13);
  EXPECT_EQ(push(copy, 0, 3, {4, 8}), 13);
  EXPECT_EQ(push(copy, 1, 2, {0, 8}), 14);
}

}  // namespace
}  // namespace artel::ps
