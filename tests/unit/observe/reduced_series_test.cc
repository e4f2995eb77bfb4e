#include "artel/observe/reduced_series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artel/base/file.h"
#include "artel/observe/metrics_tail.h"
#include "tests/support/temporary_folder.h"

namespace artel::observe {
namespace {

TEST(ReducedSeries, FewPointsStayAsTheyAre) {
  ReducedSeries series;
  for (int step = 1; step <= 10; ++step) series.add(step, step * step);
  const auto [x, y] = series.points(100);
  EXPECT_EQ(x, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(y.back(), 100);
}

TEST(ReducedSeries, PeaksOfAMillionPointsStay) {
  ReducedSeries series(64);
  for (int64_t step = 1; step <= 1'000'000; ++step)
    series.add(step, step == 333'333 ? 50 : step == 777'777 ? -50 : std::sin(step));
  for (const size_t most : {10, 50, 1000}) {
    const auto [x, y] = series.points(most);
    EXPECT_LE(x.size(), std::min<size_t>(most + 3, 130));
    EXPECT_TRUE(std::ranges::is_sorted(x));
    EXPECT_EQ(x[std::ranges::max_element(y) - y.begin()], 333'333);
    EXPECT_EQ(x[std::ranges::min_element(y) - y.begin()], 777'777);
    EXPECT_EQ(x.back(), 1'000'000);
  }
}

TEST(ReducedSeries, APartOfIt) {
  ReducedSeries series;
  for (int step = 1; step <= 1000; ++step) series.add(step, step);
  const auto [x, y] = series.points(1000, 990, 995);
  EXPECT_EQ(x, (std::vector<int64_t>{990, 991, 992, 993, 994, 995}));
  EXPECT_TRUE(series.points(10, 2000).x.empty());
  EXPECT_TRUE(ReducedSeries().points(10).x.empty());
}

TEST(ReducedSeries, WhatIsNotFiniteIsLeftOut) {
  ReducedSeries series;
  series.add(1, std::nan(""));
  EXPECT_TRUE(series.empty());
}

TEST(MetricsTail, FollowsAFileThatGrows) {
  TemporaryFolder folder;
  MetricsTail tail(folder.path());
  EXPECT_FALSE(tail.read());
  const std::string one = "{\"step\":1,\"seconds\":0.5,\"train/loss\":2.5}\n",
                    two = "{\"step\":2,\"seconds\":1,\"train/loss\":null,\"test/loss\":-1e-3}\n";
  const auto append = [&](const std::string& text) {
    std::FILE* file = std::fopen((folder / "metrics.jsonl").c_str(), "a");
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  append(one + two.substr(0, 20));
  EXPECT_TRUE(tail.read());
  EXPECT_EQ(tail.series().at("train/loss").last(), 2.5);
  EXPECT_EQ(tail.series().at("seconds").last_step(), 1);
  append(two.substr(20));
  EXPECT_TRUE(tail.read());
  EXPECT_FALSE(tail.read());
  EXPECT_EQ(tail.series().at("seconds").last_step(), 2);
  EXPECT_EQ(tail.series().at("train/loss").last_step(), 1);
  EXPECT_EQ(tail.series().at("test/loss").last(), -1e-3);
  append("{\"step\":2,\"seconds\":1,\"event\":\"loss\",\"text\":\"a \\\"b\\\"\"}\n");
  tail.read();
  ASSERT_EQ(tail.events().size(), 1);
  EXPECT_EQ(tail.events()[0].text, "a \"b\"");
  write_file_atomically(folder / "metrics.jsonl", one);  // begun anew
  EXPECT_TRUE(tail.read());
  EXPECT_EQ(tail.series().size(), 2);
  EXPECT_TRUE(tail.events().empty());
}

TEST(MetricsTail, BrokenLinesAreLeftOut) {
  TemporaryFolder folder;
  write_file_atomically(folder / "metrics.jsonl",
                        "\n{\n{}\nnull\n[1]\n{\"step\":\"x\"}\n{\"step\":1e300,\"a\":1}\n"
                        "{\"step\":-1,\"a\":1}\n{\"step\":1,\"a\":{}}\n{\"a\":1,\"step\":1}\n"
                        "{\"event\":3}\n{\"step\":3,\"a\":7,}\n{\"step\":4,\"a\":8}\n");
  MetricsTail tail(folder.path());
  tail.read();
  ASSERT_EQ(tail.series().size(), 1);
  EXPECT_EQ(tail.series().at("a").points(10).x, (std::vector<int64_t>{4}));
}

}  // namespace
}  // namespace artel::observe
