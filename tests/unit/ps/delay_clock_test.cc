#include "artel/ps/delay_clock.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

// Four clients and a delay of 2: clients 1, 2, and 4 have finished iteration 1, clients 1 and 2
// also iteration 2. Clients 1 and 2 must wait now, client 4 may continue, and client 3 is the
// slowest.
TEST(DelayClock, ClientsThatAreTwoAheadWait) {
  DelayClock clock(4, 2);
  const int first = 0, second = 1, third = 2, fourth = 3;
  for (const int client : {first, second, fourth}) clock.finish(client, 1);
  for (const int client : {first, second}) clock.finish(client, 2);
  EXPECT_FALSE(clock.may_start(first));
  EXPECT_FALSE(clock.may_start(second));
  EXPECT_TRUE(clock.may_start(third));
  EXPECT_TRUE(clock.may_start(fourth));
  EXPECT_THROW(clock.finish(first, 3), Error);

  clock.finish(third, 1);  // now all have finished iteration 1
  EXPECT_TRUE(clock.may_start(first));
  EXPECT_TRUE(clock.may_start(second));
}

TEST(DelayClock, WithoutDelayAllGoInStep) {
  DelayClock clock(2, 0);
  clock.finish(0, 1);
  EXPECT_FALSE(clock.may_start(0));
  clock.finish(1, 1);
  EXPECT_TRUE(clock.may_start(0));
}

TEST(DelayClock, NobodyIsEverFurtherAheadThanTheDelay) {
  for (const int64_t delay : {1, 2, 4, 8}) {
    DelayClock clock(3, delay);
    int64_t next = 1;
    while (clock.may_start(0)) clock.finish(0, next++);
    EXPECT_EQ(clock.finished(0), delay);
  }
}

TEST(DelayClock, WithoutALimitNobodyWaits) {
  DelayClock clock(2, std::nullopt);
  for (int64_t i = 1; i <= 1000; ++i) clock.finish(0, i);
  EXPECT_TRUE(clock.may_start(0));
  EXPECT_EQ(clock.slowest(), 0);
}

TEST(DelayClock, NobodyWaitsForTheLost) {
  DelayClock clock(3, 1);
  clock.finish(0, 1);
  clock.finish(1, 1);
  EXPECT_FALSE(clock.may_start(0));
  clock.drop(2);
  EXPECT_TRUE(clock.may_start(0));
  EXPECT_EQ(clock.slowest(), 1);
}

TEST(DelayClock, IterationsComeInOrder) {
  DelayClock clock(1, 0, 5);
  EXPECT_THROW(clock.finish(0, 5), Error);
  clock.finish(0, 6);
  EXPECT_THROW(clock.finish(0, 6), Error);
}

}  // namespace
}  // namespace artel::ps
