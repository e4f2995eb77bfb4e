#include "artel/observe/loss_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace artel::observe {
namespace {

// The warnings for the losses of steps 1, 2, ...; `planned` steps are expected in all.
std::vector<std::string> said(int64_t steps, const std::function<double(int64_t)>& loss,
                              int64_t planned = 0) {
  LossWatch watch;
  std::vector<std::string> all;
  for (int64_t step = 1; step <= steps; ++step)
    if (const auto text = watch.add({.step = step, .steps = planned, .loss = loss(step)}))
      all.push_back(*text);
  return all;
}

// Noise without random numbers.
double noisy(int64_t step) { return 0.2 * std::sin(static_cast<double>(step) * 12.9898); }

TEST(LossWatch, ALossThatFallsIsNoNews) {
  EXPECT_TRUE(said(5000, [](int64_t step) {
                return 2.3 * std::exp(-static_cast<double>(step) / 2000) + 0.1 * noisy(step);
              }).empty());
}

TEST(LossWatch, WhatIsNoNumberIsLeftOut) {
  EXPECT_TRUE(said(100, [](int64_t step) {
                return step % 7 == 0 ? std::numeric_limits<double>::infinity() : 1.0 / step;
              }).empty());
}

TEST(LossWatch, AnExplosionIsSaidOnce) {
  const auto all = said(400, [](int64_t step) {
    return step < 200 ? 2.0 - 0.008 * step : 0.4 * std::pow(1.05, step - 200);
  });
  ASSERT_EQ(all.size(), 1);
  EXPECT_TRUE(all[0].starts_with("the loss explodes")) << all[0];
}

TEST(LossWatch, NoiseIsNoExplosion) {
  EXPECT_TRUE(said(900, [](int64_t step) { return 1 + 5 * noisy(step); }).empty());
}

TEST(LossWatch, StandingStillIsSaidOnce) {
  const auto all =
      said(6000, [](int64_t step) { return std::max(1.0, 3 - 0.01 * step) + noisy(step); });
  ASSERT_EQ(all.size(), 1);
  EXPECT_TRUE(all[0].starts_with("no improvement in training loss (1")) << all[0];
}

TEST(LossWatch, AnExplosionInTheSecondStepIsReported) {
  const auto all = said(100, [](int64_t step) { return step == 1 ? 2.3 : 1e15; });
  ASSERT_EQ(all.size(), 1);
  EXPECT_TRUE(all[0].starts_with("the loss explodes")) << all[0];
  EXPECT_TRUE(has_diverged(2.3, 1.4e18));
  EXPECT_FALSE(has_diverged(2.3, 10));
}

// Fine-tuning may begin with next to no loss.
TEST(LossWatch, ASmallLossIsNoExplosion) {
  EXPECT_TRUE(said(400, [](int64_t step) { return step < 50 ? 1e-6 : 1e-2; }).empty());
  EXPECT_FALSE(has_diverged(1e-6, 1e-2));
  EXPECT_TRUE(has_diverged(1e-6, 10));
}

// 1,000 steps may take less than a second.
TEST(LossWatch, PatienceLastsForEpochsOrTime) {
  const auto warns = [](int64_t steps_per_epoch, double steps_per_second) {
    LossWatch watch;
    bool warned = false;
    for (int64_t step = 1; step <= 3000; ++step)
      warned = warned || watch.add({.step = step,
                                    .loss = 0.7,
                                    .steps_per_epoch = steps_per_epoch,
                                    .seconds = static_cast<double>(step) / steps_per_second});
    return warned;
  };
  EXPECT_FALSE(warns(1800, 2000));
  EXPECT_TRUE(warns(600, 2000));
  EXPECT_TRUE(warns(1800, 20));
}

TEST(LossWatch, APlateauEarlyInALongRunIsNotReported) {
  const auto plateau = [](int64_t step) { return step < 2500 ? 2.3 : 0.7; };
  EXPECT_TRUE(said(3000, plateau, 30'000).empty());
  EXPECT_EQ(said(3000, plateau).size(), 1);
}

}  // namespace
}  // namespace artel::observe
