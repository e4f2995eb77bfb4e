#include "artel/optim/schedule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"

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
    try {
      schedule_from_options(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
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
