#include "artel/optim/proximal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace artel::optim {
namespace {

// The minimum of penalty(u) + (u - x)^2 / 2 by a fine grid: what a proximal operator must return.
float minimiser(float x, const std::function<float(float)>& penalty) {
  float best = 0, lowest = 1e30f;
  for (int i = -40000; i <= 40000; ++i) {
    const float u = static_cast<float>(i) * 1e-4f;
    const float value = penalty(u) + (u - x) * (u - x) / 2;
    if (value < lowest) lowest = value, best = u;
  }
  return best;
}

const std::vector<float> kPoints = {-3, -0.7f, -0.5f, -0.2f, 0, 0.3f, 0.5f, 0.9f, 2.5f};

TEST(Proximal, MatchesTheDefinition) {
  for (const float point : kPoints) {
    float l1 = point, l2 = point, both = point, group = point;
    prox_elastic_net({&l1, 1}, 0.5f, 0);
    prox_elastic_net({&l2, 1}, 0, 0.5f);
    prox_elastic_net({&both, 1}, 0.5f, 2);
    prox_group({&group, 1}, 0.5f);
    EXPECT_NEAR(l1, minimiser(point, [](float u) { return 0.5f * std::abs(u); }), 2e-3);
    EXPECT_NEAR(l2, minimiser(point, [](float u) { return 0.25f * u * u; }), 2e-3);
    EXPECT_NEAR(both, minimiser(point, [](float u) { return 0.5f * std::abs(u) + u * u; }), 2e-3);
    EXPECT_FLOAT_EQ(group, l1);  // a group of one
  }
}

TEST(Proximal, L1GivesExactZeros) {
  std::vector<float> x = {0.4f, -0.5f, 0.6f};
  prox_elastic_net(x, 0.5f, 0);
  EXPECT_EQ(x[0], 0);
  EXPECT_EQ(x[1], 0);
  EXPECT_NEAR(x[2], 0.1f, 1e-6);
}

TEST(Proximal, AGroupLivesOrDiesAsOne) {
  std::vector<float> x = {3, 4}, small = {0.3f, 0.4f};
  prox_group(x, 1);
  EXPECT_FLOAT_EQ(x[0], 3 * 0.8f);
  EXPECT_FLOAT_EQ(x[1], 4 * 0.8f);
  prox_group(small, 1);
  EXPECT_EQ(small, (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace artel::optim
