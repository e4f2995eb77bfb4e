#include "artel/plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/plan/drawing.h"
#include "artel/plan/simulate.h"
#include "tests/support/error_of.h"

namespace artel::plan {
namespace {

// Stages a worker: one, or several for the schedules that want them.
std::vector<int> stages_for(const std::string& name) {
  return schedule_kind(name).several_stages ? std::vector{2, 3, 4} : std::vector{1};
}

TEST(Schedule, IsValidForAllSizes) {
  for (const std::string& name : schedule_names())
    for (const int each : stages_for(name))
      for (int workers = 1; workers <= 8; ++workers)
        for (int lanes = 1; lanes <= 20; ++lanes)
          check_schedule(make_schedule(name, {workers, workers * each, lanes}));
}

TEST(Schedule, KeepsAsManyActivationsAsThePapersSay) {
  const auto kept = [](std::string_view name, int each = 1) {
    return most_kept(make_schedule(name, {4, 4 * each, 12}));
  };
  EXPECT_EQ(kept("gpipe"), (std::vector{12, 12, 12, 12}));
  EXPECT_EQ(kept("1f1b"), (std::vector{4, 3, 2, 1}));
  EXPECT_EQ(kept("zero_bubble"), (std::vector{4, 4, 4, 4}));
  EXPECT_EQ(kept("zero_bubble_h2"), (std::vector{7, 7, 7, 7}));
  EXPECT_EQ(kept("interleaved", 2), (std::vector{11, 9, 7, 5}));
}

// With equal times of all tasks, N workers and L lanes.
TEST(Schedule, IdlesAsLongAsThePapersSay) {
  for (int workers = 2; workers <= 6; ++workers)
    for (const int lanes : {2 * workers, 3 * workers + 1}) {
      const double work = 3.0 * lanes, fill = workers - 1.0;
      const auto seconds = [&](std::string_view name, int each = 1) {
        const PipelineShape shape = {workers, workers * each, lanes};
        return simulate(make_schedule(name, shape), PipelineCosts::equal(shape)).seconds;
      };
      EXPECT_NEAR(seconds("gpipe"), work + 3 * fill, 1e-9);
      EXPECT_NEAR(seconds("1f1b"), work + 3 * fill, 1e-9);
      EXPECT_NEAR(seconds("interleaved", 3), work + fill, 1e-9);
      EXPECT_NEAR(seconds("zero_bubble"), work + fill, 1e-9);
      EXPECT_NEAR(seconds("zero_bubble_h2"), work, 1e-9);
    }
}

TEST(Schedule, FaultsAreFound) {
  const Schedule good = make_schedule("1f1b", {2, 2, 3});
  check_schedule(good);
  Schedule twice = good;
  twice.tasks[0].push_back(twice.tasks[0].front());
  EXPECT_THROW(check_schedule(twice), Error);
  Schedule missing = good;
  missing.tasks[1].pop_back();
  EXPECT_THROW(check_schedule(missing), Error);
  Schedule elsewhere = good;
  std::swap(elsewhere.tasks[0], elsewhere.tasks[1]);
  EXPECT_THROW(check_schedule(elsewhere), Error);
  Schedule hungry = good;  // keeps all lanes
  std::stable_partition(hungry.tasks[0].begin(), hungry.tasks[0].end(),
                        [](const Task& task) { return task.work == Work::forward; });
  EXPECT_THROW(check_schedule(hungry), Error);
  Schedule stuck = good;  // the last worker wants a lane that the first sends after its gradient
  std::swap(stuck.tasks[0][0], stuck.tasks[0][2]);
  EXPECT_THROW(check_schedule(stuck), Error);
}

TEST(Schedule, WrongShapesSayWhatToChange) {
  const auto message = [](std::string_view name, const PipelineShape& shape) -> std::string {
    return artel::error_of([&] { make_schedule(name, shape); });
  };
  EXPECT_EQ(message("1f1b", {4, 8, 8}),
            "[schedule 1f1b] stages: got 8 for 4 workers, expected one for each; try interleaved");
  EXPECT_EQ(
      message("interleaved", {4, 4, 8}),
      "[schedule interleaved] stages: got one for each of 4 workers, expected several; try 8");
  EXPECT_EQ(message("interleaved", {4, 10, 8}),
            "[schedule interleaved] stages: got 10 for 4 workers, expected a multiple; try 8");
  EXPECT_NE(message("gpip", {2, 2, 2}).find("did you mean 'gpipe'"), std::string::npos);
}

TEST(Simulation, CountsTransfersThatAreNotHidden) {
  const PipelineShape shape = {2, 2, 1};
  PipelineCosts costs = PipelineCosts::equal(shape);
  costs.transfers = {0.5};
  // One lane there and back: forward, forward, backward, backward, and two transfers between.
  EXPECT_NEAR(simulate(make_schedule("gpipe", shape), costs).seconds, 6 + 1, 1e-9);
  // With many lanes they overlap.
  const PipelineShape many = {2, 2, 16};
  costs.transfers = {0.5};
  EXPECT_NEAR(simulate(make_schedule("gpipe", many), costs).seconds, 48 + 3 + 1, 1e-9);
}

TEST(Simulation, TheSlowestStageDecides) {
  const PipelineShape shape = {3, 3, 30};
  PipelineCosts costs = PipelineCosts::equal(shape);
  costs.stages[1] = {2, 2, 2};
  const Simulation simulation = simulate(make_schedule("1f1b", shape), costs);
  EXPECT_GE(simulation.seconds, 30 * 6);
  EXPECT_LE(simulation.seconds, 30 * 6 + 6);
  EXPECT_DOUBLE_EQ(simulation.busy[1], 30 * 6);
}

TEST(Simulation, AutoTakesTheFastestThatFits) {
  const PipelineShape shape = {4, 4, 8};
  const PipelineCosts costs = PipelineCosts::equal(shape);
  const auto within = [&](int limit) {
    return fastest_schedule(shape, costs,
                            [&](const Schedule& schedule) {
                              const std::vector<int> kept = most_kept(schedule);
                              return *std::max_element(kept.begin(), kept.end()) <= limit;
                            })
        .name;
  };
  EXPECT_EQ(within(8), "zero_bubble_h2");
  EXPECT_EQ(within(4), "zero_bubble");
  EXPECT_THROW(within(3), Error);
  // One worker has nothing to wait for: the simplest is as good.
  EXPECT_EQ(fastest_schedule({1, 1, 4}, PipelineCosts::equal({1, 1, 4}),
                             [](const Schedule&) { return true; })
                .name,
            "1f1b");
}

TEST(Drawing, ShowsTasksInTime) {
  const PipelineShape shape = {2, 2, 2};
  const Schedule schedule = make_schedule("1f1b", shape);
  const Simulation simulation = simulate(schedule, PipelineCosts::equal(shape));
  EXPECT_EQ(schedule_text(schedule, simulation),
            "worker 0   F0 F1       B0---    B1---\n"
            "worker 1      F0 B0--- F1 B1---\n");
  // Where there is no room, letters remain.
  EXPECT_EQ(schedule_text(schedule, simulation, 9),
            "worker 0   FF  B  B\n"
            "worker 1    FB FB\n");
  const std::string svg = schedule_svg(schedule, simulation);
  EXPECT_NE(svg.find(">F1</text>"), std::string::npos);
  EXPECT_NE(svg.find(">backward</text>"), std::string::npos);
  EXPECT_EQ(svg.find("gradient of the input"), std::string::npos);
}

}  // namespace
}  // namespace artel::plan
