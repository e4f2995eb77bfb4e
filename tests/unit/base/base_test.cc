#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/base/time.h"

namespace artel {
namespace {

// The known-answer vectors published with the Random123 library.
TEST(Random, PhiloxMatchesPublishedVectors) {
  EXPECT_EQ(philox(0, 0, 0),
            (std::array<uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(Random, KeyDecidesTheStream) {
  Random a{1, 2}, b{1, 2}, c{2, 1};
  const uint64_t first = a.next_u64();
  EXPECT_EQ(first, b.next_u64());
  EXPECT_NE(first, c.next_u64());
}

TEST(Random, Moments) {
  Random random{7};
  double sum = 0, squares = 0, uniform = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    uniform += u;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(uniform / n, 0.5, 0.01);
}

TEST(Random, BelowCoversItsRange) {
  Random random{3};
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(*seen.rbegin(), 6u);
}

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

TEST(File, WritesAtomicallyAndReadsBack) {
  const auto folder = std::filesystem::temp_directory_path() / "artel_file_test";
  std::filesystem::create_directories(folder);
  const auto path = folder / "a.txt";
  write_file_atomically(path, "first");
  write_file_atomically(path, "second");
  EXPECT_EQ(read_file(path), "second");
  const MappedFile mapped(path);
  EXPECT_EQ(mapped.bytes().size(), 6u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(File, NamesTheMissingFile) {
  try {
    read_file("/nonexistent/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_STREQ(error.what(), "[/nonexistent/x] cannot open: No such file or directory");
  }
}

TEST(Text, ForPeople) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(16 << 20), "16 MiB");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(123), "123");
  EXPECT_EQ(format_duration(245), "4 min 05 s");
  EXPECT_EQ(did_you_mean("epchs", {"epochs", "steps"}), "; did you mean 'epochs'?");
  EXPECT_EQ(did_you_mean("zzzzzzzz", {"epochs"}), "");
  EXPECT_EQ(join(split("a,b,,c", ','), "|"), "a|b||c");
  EXPECT_EQ(trim("  x y\n"), "x y");
}

}  // namespace
}  // namespace artel
