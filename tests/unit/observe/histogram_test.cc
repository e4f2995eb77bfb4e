#include "artel/observe/histogram.h"

#include <gtest/gtest.h>

#include <cmath>

namespace artel::observe {
namespace {

TEST(Histogram, CountsValuesInBins) {
  const std::vector<float> values = {0, 1, 1.5, 2, 4};
  const Histogram histogram = histogram_of(values, 4);
  EXPECT_EQ(histogram.min, 0);
  EXPECT_EQ(histogram.max, 4);
  EXPECT_EQ(histogram.count, 5);
  EXPECT_EQ(histogram.sum, 8.5);
  EXPECT_EQ(histogram.squares, 1 + 2.25 + 4 + 16);
  EXPECT_EQ(histogram.limits, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(histogram.counts, (std::vector<double>{1, 2, 1, 1}));
}

TEST(Histogram, EqualValuesAreOneBin) {
  const std::vector<float> values(7, -2.5f);
  const Histogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.limits, (std::vector<double>{-2.5}));
  EXPECT_EQ(histogram.counts, (std::vector<double>{7}));
}

TEST(Histogram, WhatIsNoNumberDoesNotCount) {
  const std::vector<float> values = {NAN, 1, INFINITY, -INFINITY, 3};
  const Histogram histogram = histogram_of(values, 2);
  EXPECT_EQ(histogram.count, 2);
  EXPECT_EQ(histogram.counts, (std::vector<double>{1, 1}));
  EXPECT_TRUE(histogram_of({}).limits.empty());
  EXPECT_TRUE(histogram_of(std::vector<float>{NAN}).limits.empty());
}

// Far apart, and so near that a bin has no width.
TEST(Histogram, ExtremesStayInside) {
  const std::vector<float> wide = {-3e38f, 3e38f};
  const std::vector<float> narrow = {1, std::nextafter(1.0f, 2.0f)};
  for (const auto& values : {wide, narrow}) {
    double total = 0;
    for (const double count : histogram_of(values).counts) total += count;
    EXPECT_EQ(total, 2);
  }
}

}  // namespace
}  // namespace artel::observe
