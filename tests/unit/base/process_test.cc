#include "artel/base/process.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"

namespace artel {
namespace {

TEST(Process, RunsInAFolderAndReportsTheResult) {
  const ProcessResult result =
      run_program({"sh", "-c", "pwd; echo oops >&2; exit 3"}, "/usr", Deadline::after(10));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "/usr\noops\n");
  EXPECT_TRUE(program_exists("sh"));
  EXPECT_FALSE(program_exists("no-such-program"));
  EXPECT_THROW(run_program({"no-such-program"}, "/", Deadline::after(10)), Error);
}

TEST(Process, IsKilledAtTheDeadlineWithItsChildren) {
  const auto start = Clock::now();
  EXPECT_THROW(run_program({"sh", "-c", "sleep 30 & sleep 30"}, "/", Deadline::after(0.3)), Error);
  EXPECT_LT(seconds_between(start, Clock::now()), 5);
}

}  // namespace
}  // namespace artel
