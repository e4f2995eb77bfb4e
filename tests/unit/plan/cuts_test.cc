#include "artel/plan/cuts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/random.h"

namespace artel::plan {
namespace {

// A row of random nodes on workers of random speeds.
struct RandomRow {
  std::vector<double> seconds, bytes, speeds, sizes;
  double room = kNever;

  RandomRow(int nodes, int stages, uint64_t seed) {
    Random random({seed});
    for (int i = 0; i < nodes; ++i) {
      seconds.push_back(1 + random.below(9));
      bytes.push_back(1 + random.below(100));
      sizes.push_back(1 + random.below(9));
    }
    for (int i = 0; i < stages; ++i) speeds.push_back(0.5 + random.uniform());
    if (seed % 3 == 0) room = 12;
  }

  CutProblem problem() const {
    return {.nodes = static_cast<int>(seconds.size()),
            .stages = static_cast<int>(speeds.size()),
            .seconds =
                [this](int stage, int first, int last) {
                  double sum = 0, size = 0;
                  for (int i = first; i < last; ++i) sum += seconds[i], size += sizes[i];
                  return size > room ? kNever : sum / speeds[stage];
                },
            .bytes = [this](int cut) { return bytes[cut]; }};
  }
};

// All ways to cut, one after another.
void for_all_cuts(int nodes, int stages, StageBegins& begins,
                  const std::function<void(const StageBegins&)>& visit) {
  if (static_cast<int>(begins.size()) == stages) return visit(begins);
  for (int next = begins.back() + 1; next < nodes; ++next) {
    begins.push_back(next);
    for_all_cuts(nodes, stages, begins, visit);
    begins.pop_back();
  }
}

TEST(Cuts, AreAsGoodAsTryingAll) {
  int unfit = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const int stages = 1 + static_cast<int>(seed % 5);
    const int nodes = stages + static_cast<int>(seed / 5 % 7);
    const RandomRow row(nodes, stages, seed);
    const CutProblem problem = row.problem();
    double shortest = kNever, fewest = shortest;
    StageBegins begins = {0};
    const auto for_all = [&](const auto& visit) { for_all_cuts(nodes, stages, begins, visit); };
    for_all(
        [&](const StageBegins& b) { shortest = std::min(shortest, longest_stage(problem, b)); });
    for_all([&](const StageBegins& b) {
      if (longest_stage(problem, b) <= shortest * (1 + problem.slack))
        fewest = std::min(fewest, bytes_over_cuts(problem, b));
    });
    const auto found = best_cuts(problem);
    ASSERT_EQ(found.has_value(), shortest < kNever) << seed;
    unfit += !found;
    if (!found) continue;
    EXPECT_EQ(found->size(), static_cast<size_t>(stages));
    EXPECT_LE(longest_stage(problem, *found), shortest * (1 + problem.slack)) << seed;
    EXPECT_DOUBLE_EQ(bytes_over_cuts(problem, *found), fewest) << seed;
  }
  EXPECT_GT(unfit, 0);
  EXPECT_LT(unfit, 100);
}

TEST(Cuts, ASlowWorkerGetsAShorterStage) {
  const std::vector<double> speeds = {1, 0.25, 1};
  const CutProblem problem = {
      .nodes = 90,
      .stages = 3,
      .seconds = [&](int stage, int first, int last) { return (last - first) / speeds[stage]; },
      .bytes = [](int) { return 1.0; }};
  EXPECT_EQ(*best_cuts(problem), (StageBegins{0, 40, 50}));
}

TEST(Cuts, MoreStagesThanNodesSayWhatToChange) {
  try {
    best_cuts({.nodes = 3, .stages = 4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[pipeline] got 4 stages for 3 ops, expected at most one for each; try 3");
  }
}

TEST(Cuts, ByEqualWeights) {
  EXPECT_EQ(equal_cuts({1, 1, 1, 1, 1, 1}, 3), (StageBegins{0, 2, 4}));
  EXPECT_EQ(equal_cuts({1, 1, 1, 9}, 2), (StageBegins{0, 3}));
  EXPECT_EQ(equal_cuts({9, 1, 1, 1}, 2), (StageBegins{0, 1}));
  EXPECT_EQ(equal_cuts({0, 0, 0, 1}, 4), (StageBegins{0, 1, 2, 3}));
  EXPECT_EQ(equal_cuts({1, 0, 0, 0}, 4), (StageBegins{0, 1, 2, 3}));
}

}  // namespace
}  // namespace artel::plan
