#include "artel/ps/rules/rule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

const Segment kWeights = {.name = "w", .keys = {0, 4}};

std::vector<float> after(const optim::Options& options, std::vector<float> values,
                         const std::vector<float>& gradient, const Segment& segment = kWeights,
                         std::vector<float> curvature = {}) {
  const std::unique_ptr<UpdateRule> rule = make_rule(options);
  std::vector<std::vector<float>> memory(rule->states().size(),
                                         std::vector<float>(values.size(), 0));
  if (!curvature.empty()) memory[0] = curvature;
  std::vector<std::span<float>> states(memory.begin(), memory.end());
  rule->apply(segment, {.number = 1, .learning_rate = 0.5f}, values, gradient, states);
  return values;
}

TEST(Rules, PlainAndMomentum) {
  EXPECT_EQ(after({{"name", "sgd"}}, {1, 2}, {2, -2}), (std::vector<float>{0, 3}));
  EXPECT_EQ(after({{"name", "momentum"}}, {1, 2}, {2, -2}), (std::vector<float>{0, 3}));
  EXPECT_THROW(make_rule({{"name", "adagrat"}}), Error);
}

TEST(Rules, PenaltiesShrink) {
  // x - 0.5 g = {0.4, -3, 2}, then towards zero by 0.5 * 1.
  EXPECT_EQ(after({{"name", "proximal"}, {"l1", "1"}}, {0.4f, -3, 2}, {0, 0, 0}),
            (std::vector<float>{0, -2.5f, 1.5f}));
  EXPECT_EQ(after({{"name", "proximal"}, {"l2", "2"}}, {4, -2}, {0, 0}),
            (std::vector<float>{2, -1}));
  const auto elastic = after({{"name", "proximal"}, {"l1", "1"}, {"l2", "2"}}, {4.5f}, {0});
  EXPECT_FLOAT_EQ(elastic[0], 2);
}

TEST(Rules, GroupsVanishAsOne) {
  const optim::Options options = {{"name", "proximal"}, {"group", "10"}, {"group_size", "2"}};
  // Lengths 5 and 50; each is shortened by 0.5 * 10.
  const auto values = after(options, {3, 4, 30, 40}, {0, 0, 0, 0});
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], 0);
  EXPECT_FLOAT_EQ(std::hypot(values[2], values[3]), 45);
  EXPECT_TRUE(make_rule(options)->needs_whole_segments());
}

TEST(Rules, CurvatureDividesTheRate) {
  const optim::Options options = {{"name", "proximal"}, {"curvature", "true"}};
  EXPECT_EQ(after(options, {1, 1, 1}, {1, 1, 1}, kWeights, {1, 2, 0}),
            (std::vector<float>{0.5f, 0.75f, 1}));
}

TEST(Rules, NoPenaltyWhereNothingDecays) {
  const Segment bias = {.name = "b", .keys = {0, 1}, .decays = false};
  EXPECT_EQ(after({{"name", "proximal"}, {"l1", "1"}}, {2}, {1}, bias), (std::vector<float>{1.5f}));
}

TEST(Rules, RefuseNegativePenaltiesAndUnknownOptions) {
  EXPECT_THROW(make_rule({{"name", "proximal"}, {"l1", "-1"}}), Error);
  EXPECT_THROW(make_rule({{"name", "proximal"}, {"l3", "1"}}), Error);
}

TEST(Rules, PenaltyOfValues) {
  const Proximal penalty = {.l1 = 2, .l2 = 4, .group = 1, .group_size = 2};
  const std::vector<float> values = {3, -4};
  EXPECT_DOUBLE_EQ(penalty.penalty(values), 2 * 7 + 2 * 25 + 5);
}

}  // namespace
}  // namespace artel::ps
