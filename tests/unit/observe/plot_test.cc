#include "artel/observe/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace artel::observe {
namespace {

using Ticks = std::vector<double>;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Plot, NiceTicks) {
  EXPECT_EQ(nice_ticks(0, 1, 5), (Ticks{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  EXPECT_EQ(nice_ticks(3, 97, 5), (Ticks{20, 40, 60, 80}));
  EXPECT_EQ(nice_ticks(-1, 1, 4), (Ticks{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(nice_ticks(5, 5, 4), (Ticks{5}));
  for (const double high : {1e-7, 0.3, 7.0, 12345.0, 8e12}) {
    const Ticks ticks = nice_ticks(0, high, 6);
    EXPECT_GE(ticks.size(), 4u) << high;
    EXPECT_LE(ticks.size(), 10u) << high;
    EXPECT_LE(ticks.back(), high * (1 + 1e-9));
  }
}

TEST(Plot, LogTicks) {
  EXPECT_EQ(log_ticks(1, 1e4), (Ticks{1, 10, 100, 1000, 10000}));
  EXPECT_EQ(log_ticks(3, 30), (Ticks{5, 10, 20}));
}

TEST(Plot, TickLabels) {
  EXPECT_EQ(tick_label(0, 0.2), "0.0");
  EXPECT_EQ(tick_label(0.25, 0.25), "0.2");
  EXPECT_EQ(tick_label(0.25, 0.05), "0.25");
  EXPECT_EQ(tick_label(1500, 500), "1,500");
  EXPECT_EQ(tick_label(2e7, 1e7), "20M");
  EXPECT_EQ(tick_label(3e9, 1e9), "3G");
  EXPECT_EQ(tick_label(1e-5, 1e-5), "1e-05");
}

TEST(Plot, DrawsEverySeriesOnceAndEscapes) {
  const Plot plot = {
      .title = "a < b & c",
      .x_label = "step",
      .y_label = "loss",
      .series = {{"train", {{0, 1}, {1, 2}, {2, 4}}}, {"test", {{0, 2}, {2, 3}}, true}}};
  const std::string svg = to_svg(plot);
  EXPECT_NE(svg.find("a &lt; b &amp; c"), svg.npos);
  EXPECT_EQ(count(svg, "<path "), 2u);
  EXPECT_EQ(count(svg, "<circle "), 2u);
  EXPECT_EQ(count(svg, ">train</text>"), 1u);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Plot, OneNameHasOneColour) {
  const Plot first = {.series = {{"train", {{0, 1}, {1, 2}}}, {"test", {{0, 1}, {1, 2}}}}};
  const Plot second = {.series = {{"test", {{0, 1}, {1, 2}}}}};
  const std::string svg = to_svg(std::vector<Plot>{first, second});
  EXPECT_EQ(count(svg, "class=\"curve\" stroke=\"#0072b2\""), 2u);  // train: curve and legend
  EXPECT_EQ(count(svg, "class=\"curve\" stroke=\"#d55e00\""), 3u);  // test: and the other panel
}

TEST(Plot, LeavesGapsForWhatIsNotANumber) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const Plot plot = {.series = {{"loss", {{0, 1}, {1, nan}, {2, 3}, {3, infinity}, {4, 2}}}}};
  const std::string svg = to_svg(plot);
  EXPECT_EQ(count(svg, "M"), 3u);
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "inf"), 0u);
  Plot logarithmic = plot;
  logarithmic.log_y = true;
  logarithmic.series[0].points = {{0, 0}, {1, 10}, {2, 100}};
  EXPECT_EQ(count(to_svg(logarithmic), "nan"), 0u);
}

TEST(Plot, EmptyAndConstantPlotsAreDrawn) {
  for (const Plot& plot :
       {Plot{}, Plot{.series = {{"a", {{1, 1}}}}}, Plot{.log_x = true, .log_y = true},
        Plot{.series = {{"a", {{1, 0}, {2, 0}}}}}}) {
    const std::string svg = to_svg(plot);
    EXPECT_EQ(count(svg, "nan"), 0u);
    EXPECT_EQ(count(svg, "inf"), 0u);
  }
}

TEST(Plot, ThinsLongSeries) {
  Plot plot = {.series = {{"loss", {}}}};
  for (int i = 0; i < 100000; ++i) plot.series[0].points.emplace_back(i, i % 10);
  EXPECT_LT(to_svg(plot).size(), 20000u);
}

}  // namespace
}  // namespace artel::observe
