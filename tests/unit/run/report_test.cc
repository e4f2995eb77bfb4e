#include "artel/run/report/report.h"

#include <gtest/gtest.h>

#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

// As in the printed summary, the times add up to all waiting for the sums of others.
TEST(RunReport, WaitingForTheWireIsNotWaitingForWorkers) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  const auto summary = [&](std::optional<double> wire) {
    RunReport report(folder, 0, Part::test, /*quiet=*/true);
    report.begin();
    FitResult result;
    result.last = {.step = 3, .seconds = 10, .seconds_exchanging = 4};
    result.seconds_for_wire = wire;
    report.finish(result, 7, "");
    return parse_json(read_file(folder.summary()), "summary");
  };
  EXPECT_EQ(summary(3.0).at("seconds_waiting_for_workers"), 1.0);
  EXPECT_EQ(summary(3.0).at("seconds_waiting_for_the_wire"), 3.0);
  EXPECT_EQ(summary({}).at("seconds_waiting_for_workers"), 4.0);
  EXPECT_FALSE(summary({}).contains("seconds_waiting_for_the_wire"));
}

}  // namespace
}  // namespace artel
