#include "artel/comm/collectives/benchmark.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "ranks.h"

namespace artel::comm {
namespace {

TEST(Calibration, SmallDataTakesFewRoundsAndLargeDataTheRing) {
  const Calibration calibration;
  const std::vector<int> eight_hosts{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(choose_all_reduce(calibration, eight_hosts, 4 << 10), Algorithm::halving);
  const std::vector<int> five_hosts{0, 1, 2, 3, 4};
  EXPECT_EQ(choose_all_reduce(calibration, five_hosts, 64 << 20), Algorithm::ring);
}

TEST(Calibration, ManyRanksOnFewHostsMeetInsideTheHostFirst) {
  const Calibration slow_wire{.inside = {5e-6, 5e9}, .between = {1e-4, 1e7}};
  const std::vector<int> hosts{0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(choose_all_reduce(slow_wire, hosts, 16 << 20), Algorithm::hierarchical);
}

TEST(Calibration, ExactSumsCostAPartialSumOfEachSubtree) {
  const Calibration links;
  const auto seconds = [&](double sums) {
    return predicted_exact_seconds(links, {4, 4}, sums, 100e6);
  };
  EXPECT_NEAR(seconds(1), 1.5, 0.01);  // 2 x 3/4 of the bytes
  EXPECT_NEAR(seconds(3), 3.0, 0.01);
  EXPECT_EQ(predicted_exact_seconds(links, {1, 1}, 1, 100e6), 0);
}

TEST(Calibration, TextIsReadBackAndChecked) {
  const Calibration original{.inside = {1.5e-6, 3e9}, .between = {2e-4, 1.2e8}};
  EXPECT_EQ(Calibration::from_text(original.to_text()).to_text(), original.to_text());
  for (const char* wrong : {"", "artel-calibration-1 1 2 3", "artel-calibration-1 0 1 1 1",
                            "artel-calibration-1 nan nan nan nan", "something else"})
    EXPECT_THROW(Calibration::from_text(wrong), Error) << wrong;
}

TEST(Calibration, IsMeasuredOnceAndRemembered) {
  const std::string cache = fmt::format("{}/{}", testing::TempDir(), unique_name());
  const std::string other = "shm on elsewhere: artel-calibration-1 1 1 1 1\n";
  const std::string layout = fmt::format("shm on {0},{0},{0}: ", host_name());
  write_file_atomically(cache, other + layout + "damaged\n");
  std::vector<std::string> texts(6);
  for (int run = 0; run < 2; ++run)
    with_ranks(3, [&](Group& group) {
      bool remembered = run == 0;
      texts[3 * run + group.rank()] = calibrate(group, cache, &remembered).to_text();
      EXPECT_EQ(remembered, run == 1);
    });
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  EXPECT_EQ(read_file(cache), layout + texts[0] + "\n" + other);
  unlink(cache.c_str());
}

TEST(Benchmark, RowsTableAndPlot) {
  with_ranks(2, [](Group& group) {
    const auto rows =
        benchmark_all_reduce(group, {.sizes = {1024, 65536},
                                     .algorithms = {Algorithm::ring, Algorithm::direct},
                                     .seconds = 0.01});
    ASSERT_EQ(rows.size(), 4);
    for (const BenchmarkRow& row : rows) {
      EXPECT_GT(row.seconds, 0);
      // Two ranks send as much as the data is long.
      EXPECT_DOUBLE_EQ(row.bus_bandwidth, row.algorithm_bandwidth);
    }
    const std::string table = benchmark_table(rows);
    EXPECT_NE(table.find("ring"), std::string::npos);
    EXPECT_NE(table.find("64 KiB"), std::string::npos);
    const std::string svg = benchmark_svg(rows);
    size_t curves = 0;
    for (size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) ++curves;
    EXPECT_EQ(curves, 2);
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
  });
}

}  // namespace
}  // namespace artel::comm
