#include "artel/optim/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "tests/support/error_of.h"

namespace artel::optim {
namespace {

using Json = nlohmann::json;

Json golden() { return Json::parse(read_file(ARTEL_GOLDEN_DIR "/schedules.json")); }

TEST(Schedule, AgreesWithPyTorch) {
  const Json all = golden();
  ASSERT_EQ(all["cases"].size(), 10u);
  for (const Json& golden_case : all["cases"]) {
    SCOPED_TRACE(golden_case["options"].dump());
    const Schedule schedule(schedule_from_options(golden_case["options"].get<Options>()),
                            all["learning_rate"],
                            {.total_steps = 50, .steps_per_epoch = golden_case["steps_per_epoch"]});
    const auto expected = golden_case["rates"].get<std::vector<double>>();
    ASSERT_EQ(expected.size(), 50u);
    for (int64_t step = 1; step <= 50; ++step)
      EXPECT_NEAR(schedule.at(step), expected[step - 1], 1e-8) << "step " << step;
  }
}

TEST(Schedule, PlateauAgreesWithPyTorch) {
  const Json plateaus = golden()["plateaus"];
  ASSERT_EQ(plateaus.size(), 2u);
  for (const Json& golden_case : plateaus) {
    const auto config = schedule_from_options(golden_case["options"].get<Options>());
    const auto settings = std::get<Plateau>(config.shape);
    PlateauReducer reducer(settings);
    int reductions = 0;
    for (size_t i = 0; i < golden_case["metrics"].size(); ++i) {
      const double before = reducer.factor();
      const bool reduced = reducer.observe(golden_case["metrics"][i]);
      EXPECT_NEAR(reducer.factor(), golden_case["factors"][i], 1e-8) << "epoch " << i;
      EXPECT_EQ(reduced, reducer.factor() < before);
      reductions += reduced;
      reducer = PlateauReducer(settings, reducer.state());  // as after a checkpoint
    }
    EXPECT_GE(reductions, 3);
  }
}

TEST(Schedule, ScalesWithTheBatch) {
  const auto rate = [](const std::string& scaling) {
    return Schedule(schedule_from_options({{"scaling", scaling}, {"reference_batch", "64"}}), 0.1,
                    {.total_steps = 10, .batch_size = 256})
        .at(1);
  };
  EXPECT_DOUBLE_EQ(rate("none"), 0.1);
  EXPECT_DOUBLE_EQ(rate("linear"), 0.4);
  EXPECT_DOUBLE_EQ(rate("sqrt"), 0.2);
}

TEST(Schedule, WarmsUpBeforeMilestones) {
  const Schedule schedule(schedule_from_options({{"name", "multi_step"},
                                                 {"milestones", "2, 3"},
                                                 {"warmup", "1"},
                                                 {"warmup_start", "0.5"}}),
                          1, {.total_steps = 40, .steps_per_epoch = 10});
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(6), 0.75);
  EXPECT_DOUBLE_EQ(schedule.at(20), 1);
  EXPECT_DOUBLE_EQ(schedule.at(21), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(31), 0.01);
  EXPECT_DOUBLE_EQ(schedule.at(1000), schedule.at(40));
}

// Every tenth, third or seventh of an epoch begins with the step that it says, whatever the
// fractions are rounded to; in whole numbers, step k + 1 has passed k * parts / steps of them.
TEST(Schedule, FractionsOfAnEpochAreNotLate) {
  for (const int64_t steps : {10, 30, 70, 210, 1000})
    for (const int64_t parts : {3, 7, 10, 100}) {
      const std::string every = fmt::format("{}", 1.0 / static_cast<double>(parts));
      std::string milestones = "0";
      for (int64_t i = 1; i <= 3 * parts; ++i)
        milestones += fmt::format(",{}", static_cast<double>(i) / static_cast<double>(parts));
      const Horizon horizon = {.total_steps = 3 * steps, .steps_per_epoch = steps};
      const Schedule by_step(
          schedule_from_options({{"name", "step"}, {"every", every}, {"factor", "0.9"}}), 1,
          horizon);
      const Schedule by_milestones(
          schedule_from_options(
              {{"name", "multi_step"}, {"milestones", milestones}, {"factor", "0.9"}}),
          0.9, horizon);
      for (int64_t k = 0; k < 3 * steps; ++k) {
        const double expected = std::pow(0.9, static_cast<double>(k * parts / steps));
        ASSERT_NEAR(by_step.at(k + 1), expected, 1e-9 * expected)
            << "step " << k + 1 << " of " << steps << ", every " << every;
        ASSERT_NEAR(by_milestones.at(k + 1), 0.81 * expected, 1e-9 * expected)
            << "step " << k + 1 << " of " << steps << ", milestones of 1 / " << parts;
      }
    }
}

TEST(Schedule, SurvivesARoundTrip) {
  for (const std::string& name : schedule_names()) {
    Options given = {{"name", name}};
    if (name == "multi_step") given["milestones"] = "[10, 20.5]";
    const Options options = to_options(schedule_from_options(given));
    EXPECT_EQ(to_options(schedule_from_options(options)), options) << name;
  }
}

TEST(Schedule, NamesWhatIsWrong) {
  const auto wrong = [](const Options& options) {
    return artel::error_of([&] { schedule_from_options(options); });
  };
  EXPECT_EQ(wrong({{"name", "cosin"}}),
            "[schedule] name: got 'cosin', expected one of constant, step, multi_step, cosine, "
            "polynomial, one_cycle, plateau; did you mean 'cosine'?");
  EXPECT_EQ(wrong({{"name", "step"}, {"every", "0"}}),
            "[schedule step] every: got 0, expected more than 0");
  EXPECT_NE(wrong({{"name", "multi_step"}}), "");
  EXPECT_NE(wrong({{"name", "multi_step"}, {"milestones", "[3, x]"}}), "");
  EXPECT_NE(wrong({{"unit", "hour"}}), "");
  EXPECT_NE(wrong({{"scaling", "cubic"}}), "");
  EXPECT_NE(wrong({{"name", "one_cycle"}, {"warmup", "3"}}), "");
  EXPECT_NE(wrong({{"name", "plateau"}, {"patience", "2.5"}}), "");
  EXPECT_THROW(Schedule({}, 0.1, {.total_steps = 0}), Error);
}

}  // namespace
}  // namespace artel::optim
