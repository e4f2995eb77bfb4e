#include "artel/transfer/advise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/transfer/log_me.h"
#include "tests/unit/transfer/trained_base.h"

namespace artel::transfer {
namespace {

TEST(LogMe, EigenvaluesAreThoseOfTheMatrix) {
  // [[2, 1], [1, 2]] has 1 and 3, along (1, -1) and (1, 1).
  std::vector<double> vectors;
  const std::vector<double> values = eigenvalues({2, 1, 1, 2}, 2, vectors);
  for (int k = 0; k < 2; ++k) {
    const double x = vectors[2 * k], y = vectors[2 * k + 1];
    EXPECT_NEAR(2 * x + y, values[k] * x, 1e-9);
    EXPECT_NEAR(x + 2 * y, values[k] * y, 1e-9);
    EXPECT_NEAR(x * x + y * y, 1, 1e-9);
  }
  EXPECT_NEAR(values[0], 1, 1e-9);
  EXPECT_NEAR(values[1], 3, 1e-9);
}

TEST(LogMe, IsLargerForFeaturesThatTellTheClasses) {
  constexpr int64_t kSamples = 120, kNumbers = 8;
  Tensor good({kSamples, kNumbers}), noise({kSamples, kNumbers}), labels({kSamples}, DType::i32);
  Random random{5};
  for (int64_t i = 0; i < kSamples; ++i) {
    labels.values<int32_t>()[i] = static_cast<int32_t>(i % 3);
    for (int64_t j = 0; j < kNumbers; ++j) {
      noise.values<float>()[i * kNumbers + j] = random.normal();
      good.values<float>()[i * kNumbers + j] =
          0.5f * random.normal() + (j % 3 == i % 3 ? 2.0f : 0.0f);
    }
  }
  EXPECT_GT(log_me(good, labels), log_me(noise, labels) + 0.1);
  // In other units the features say the same.
  Tensor larger = good.clone();
  for (float& value : larger.values<float>()) value *= 1000;
  EXPECT_NEAR(log_me(larger, labels), log_me(good, labels), 1e-3);
  // Numbers that are always the same say nothing, be there fewer or more numbers than samples.
  for (const int64_t width : {kNumbers + 4, kSamples + 80}) {
    Tensor wide({kSamples, width});
    for (int64_t i = 0; i < kSamples * width; ++i)
      wide.values<float>()[i] =
          i % width < kNumbers ? good.values<float>()[i / width * kNumbers + i % width] : 1.0f;
    EXPECT_NEAR(log_me(wide, labels), log_me(good, labels), 1e-9);
  }
}

TEST(LearningCurve, APowerLawIsFoundAndExtrapolated) {
  std::vector<CurvePoint> points;
  for (const int64_t n : {50, 100, 200, 400})
    points.push_back({n, {0.05 + 2 * std::pow(n, -0.6), 0.05 + 2 * std::pow(n, -0.6)}});
  const PowerLaw law = fit_power_law(points);
  EXPECT_NEAR(law.power, 0.6, 0.051);
  EXPECT_NEAR(law.at(5000), 0.05 + 2 * std::pow(5000, -0.6), 0.01);
  // Measurements that agree leave no doubt; those that do not leave some.
  const Extrapolation sure = extrapolate(points, 5000);
  EXPECT_NEAR(sure.high - sure.low, 0, 1e-9);
  for (CurvePoint& point : points) point.errors = {point.errors[0] - 0.03, point.errors[0] + 0.03};
  const Extrapolation unsure = extrapolate(points, 5000);
  EXPECT_GT(unsure.high - unsure.low, 0.005);
  EXPECT_LE(unsure.low, unsure.error);
  EXPECT_GE(unsure.high, unsure.error);
}

TEST(LearningCurve, DoesNotRiseOrFallBelowZero) {
  const std::vector<CurvePoint> rising = {{10, {0.1}}, {20, {0.2}}, {40, {0.3}}};
  EXPECT_NEAR(fit_power_law(rising).at(1000), 0.2, 1e-9);
  const std::vector<CurvePoint> falling = {{10, {0.5}}, {20, {0.1}}, {40, {0.0}}};
  EXPECT_GE(fit_power_law(falling).at(1e6), 0);
}

TEST(LearningCurve, ItsSteepnessIsThePowerOfTheSamples) {
  const auto falling_by = [](double power) {
    std::vector<CurvePoint> points;
    for (const int64_t samples : {50, 100, 200, 400}) {
      const double error = 0.5 * std::pow(static_cast<double>(samples) / 50, -power);
      points.push_back({samples, {0.9 * error, 1.1 * error}});
    }
    return steepness(points);
  };
  EXPECT_NEAR(falling_by(0.5), 0.5, 1e-9);
  EXPECT_NEAR(falling_by(0), 0, 1e-9);
  EXPECT_EQ(falling_by(-0.3), 0);
  EXPECT_EQ(falling_by(2), 1);
  EXPECT_EQ(steepness({{50, {0.3}}}), 0);
}

TEST(Advise, MeasuresBlocksForecastsAllWaysAndChecksThem) {
  const TrainedBase trained("advise");
  const BaseNetwork base = open_base({.name = trained.base()});
  const AdviseOptions options = {.threads = 2};
  Advice advice = advise(base, data_for(base, "dark_spots"), options);
  EXPECT_EQ(advice.samples, 200);
  EXPECT_EQ(advice.classes, 3);
  ASSERT_EQ(advice.probes.size(), 2u);  // two convolutions before the head
  // Spots are told apart by their place, which means of maps forget and the last layer keeps.
  EXPECT_GT(advice.probes[1].accuracy, 0.8);
  EXPECT_GT(advice.probes[1].log_me, advice.probes[0].log_me);
  EXPECT_TRUE(advice.similar);
  const Way way = advice.chosen().way;
  EXPECT_EQ(advice.much, way == Way::fine_tune_end || way == Way::train_all);
  ASSERT_TRUE(advice.shift.has_value());
  ASSERT_EQ(advice.forecasts.size(), 4u);
  for (const Forecast& way : advice.forecasts) {
    EXPECT_LE(way.low, way.accuracy);
    EXPECT_GE(way.high, way.accuracy);
  }
  check_ways(base, "dark_spots", options, 20, trained.at("check"), advice);
  double best = 0;
  for (const Forecast& way : advice.forecasts) best = std::max(best, way.measured.value());
  EXPECT_GT(advice.chosen().measured.value(), best - 0.1);
  const std::string text = to_text(advice, 60, false);
  EXPECT_NE(text.find("advised"), std::string::npos);
  EXPECT_NE(text.find("measured"), std::string::npos);
}

}  // namespace
}  // namespace artel::transfer
