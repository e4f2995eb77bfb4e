#include "artel/run/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"

namespace artel {
namespace {

TEST(Sweep, DimensionsAreRangesAndChoices) {
  const auto rate = parse_dimension("train.optimizer.lr=0.01..1 log");
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->key, "train.optimizer.lr");
  EXPECT_TRUE(rate->logarithmic && !rate->whole);
  EXPECT_TRUE(parse_dimension("train.batch_size=16..256")->whole);
  EXPECT_EQ(parse_dimension("model.name=mlp | lenet5")->choices,
            (std::vector<std::string>{"mlp", "lenet5"}));
  EXPECT_FALSE(parse_dimension("train.epochs=3"));
  EXPECT_FALSE(parse_dimension("cluster.workers=2..8"));
  EXPECT_FALSE(parse_dimension("data.path=../x.csv"));
  for (const char* wrong : {"a=1..1", "a=2..1", "a=0..1 log", "a=x..1"})
    EXPECT_THROW(parse_dimension(wrong), Error) << wrong;
}

TEST(Sweep, ValuesLieInTheirRangesAndDependOnTheTrialAlone) {
  const auto rate = *parse_dimension("lr=0.001..1 log");
  const auto size = *parse_dimension("size=1..3");
  int small = 0;
  std::set<std::string> sizes;
  for (int trial = 0; trial < 300; ++trial) {
    const double value = std::stod(drawn_value(rate, 1, trial));
    EXPECT_TRUE(value >= 0.001 && value <= 1) << value;
    small += value < std::sqrt(0.001);
    sizes.insert(drawn_value(size, 1, trial));
    EXPECT_EQ(drawn_value(rate, 1, trial), drawn_value(rate, 1, trial));
  }
  EXPECT_NEAR(small, 150, 40);  // as many below the middle of the logarithms as above
  EXPECT_EQ(sizes, (std::set<std::string>{"1", "2", "3"}));
  EXPECT_NE(drawn_value(rate, 1, 0), drawn_value(rate, 2, 0));
}

TEST(Sweep, Rungs) {
  EXPECT_EQ(rungs_of(9, 3), (std::vector<int64_t>{1, 3, 9}));
  EXPECT_EQ(rungs_of(100, 3), (std::vector<int64_t>{11, 33, 100}));
  EXPECT_EQ(rungs_of(2, 3), (std::vector<int64_t>{2}));
  EXPECT_EQ(rungs_of(9, 1), (std::vector<int64_t>{9}));
}

// Runs a sweep whose trial i has the value `value(i)`; jobs end in the order in which they began.
SweepResults simulate(const SweepRules& rules, size_t parallel,
                      std::optional<double> (*value)(int)) {
  SweepResults results;
  std::set<SweepJob> running;
  std::vector<SweepJob> order;
  for (int guard = 0; guard < 10000; ++guard) {
    while (running.size() < parallel) {
      const auto next = next_job(rules, results, running);
      if (!next) break;
      EXPECT_FALSE(results.contains(*next));
      EXPECT_TRUE(next->rung == 0 || results.contains({next->trial, next->rung - 1}));
      EXPECT_TRUE(running.insert(*next).second);
      order.push_back(*next);
    }
    if (running.empty()) return results;
    results[order.front()] = value(order.front().trial);
    running.erase(order.front());
    order.erase(order.begin());
  }
  ADD_FAILURE() << "it does not end";
  return results;
}

int count(const SweepResults& results, int rung) {
  return static_cast<int>(std::count_if(results.begin(), results.end(),
                                        [&](const auto& r) { return r.first.rung == rung; }));
}

TEST(Sweep, TrainsTheBestLonger) {
  // In no order; the best is number 25.
  const auto value = [](int trial) -> std::optional<double> {
    return std::abs(trial * 7 % 27 - 13.0);
  };
  for (const size_t parallel : {1, 2, 5, 30}) {
    const SweepResults results = simulate({.trials = 27, .rungs = 3}, parallel, value);
    EXPECT_EQ(count(results, 0), 27);
    EXPECT_GE(count(results, 1), 9);
    EXPECT_LE(count(results, 1), 18);
    EXPECT_GE(count(results, 2), 1);
    EXPECT_EQ(ranking(results, 2, true).front(), 25) << parallel;
  }
}

TEST(Sweep, EndsWithFewTrialsAndFailures) {
  const auto one = [](int) -> std::optional<double> { return 1.0; };
  EXPECT_EQ(simulate({.trials = 1, .rungs = 3}, 2, one).size(), 3u);
  EXPECT_EQ(simulate({.trials = 4, .rungs = 1}, 2, one).size(), 4u);
  const auto none = [](int) -> std::optional<double> { return std::nullopt; };
  EXPECT_EQ(simulate({.trials = 4, .rungs = 3}, 2, none).size(), 4u);
  const auto some = [](int trial) -> std::optional<double> {
    return trial % 2 == 0 ? std::optional(static_cast<double>(trial)) : std::nullopt;
  };
  const SweepResults results =
      simulate({.trials = 6, .rungs = 2, .less_is_better = false}, 3, some);
  EXPECT_EQ(ranking(results, 1, false).front(), 4);
}

}  // namespace
}  // namespace artel
