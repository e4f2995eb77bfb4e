#include "artel/run/report/recent_states.h"

#include <gtest/gtest.h>

#include <thread>

namespace artel {
namespace {

void pass_time() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

TrainingState after(int64_t step) {
  TrainingState state;
  state.step = step;
  return state;
}

TEST(RecentStates, BeginWithTheFirstStepThatIsKept) {
  RecentStates recent;
  EXPECT_EQ(recent.continue_after(7, 0), 7);
  recent.add(after(5), false);
  recent.add(after(6), false);
  recent.add(after(6), true);
  EXPECT_EQ(recent.continue_after(7, 0), 4);
  recent.add(after(9), false);  // it was not there for a while
  EXPECT_EQ(recent.continue_after(9, 0), 8);
}

TEST(RecentStates, KeepLinesThatAreWritten) {
  RecentStates recent;
  for (const int64_t step : {5, 6, 7, 8}) recent.add(after(step), false);
  EXPECT_EQ(recent.continue_after(8, 7), 6);  // the last written step is written again
  EXPECT_EQ(recent.continue_after(8, 20), 8);
}

TEST(RecentStates, TheEndOfAnEpochIsNotKeptWithoutItsLastStep) {
  RecentStates recent(0);
  for (const int64_t step : {5, 6}) {
    recent.add(after(step), false);
    pass_time();
  }
  recent.add(after(6), true);
  pass_time();
  recent.add(after(7), false);
  EXPECT_EQ(recent.continue_after(7, 0), 6);

  RecentStates newcomer;
  newcomer.add(after(6), true);
  EXPECT_EQ(newcomer.continue_after(6, 0), 6);
}

}  // namespace
}  // namespace artel
