#include "artel/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>

#include "artel/base/error.h"

namespace artel {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int repeat = 0; repeat < 200; ++repeat) {
      std::vector<std::atomic<int>> counts(37);
      pool.run(37, [&](int64_t i) { counts[i]++; });
      for (auto& count : counts) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, RefusesMoreThreadsThanAnyMachineHas) { EXPECT_THROW(ThreadPool(100'000), Error); }

TEST(ThreadPool, NestedRunsStayInTheCallingThread) {
  ThreadPool pool(3);
  std::atomic<int> count = 0;
  pool.run(4, [&](int64_t) { pool.run(5, [&](int64_t) { count++; }); });
  EXPECT_EQ(count, 20);
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(8, [](int64_t i) { require(i != 5, ErrorKind::internal, "task {}", i); }),
               Error);
  std::atomic<int> count = 0;
  pool.run(8, [&](int64_t) { count++; });
  EXPECT_EQ(count, 8);
}

TEST(ThreadPool, ParallelForCoversTheRangeInGrains) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> counts(101);
  parallel_for(pool, 101, 8, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % 8, 0);
    for (int64_t i = begin; i < end; ++i) counts[i]++;
  });
  for (auto& count : counts) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace artel
