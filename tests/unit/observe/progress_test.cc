#include "artel/observe/progress.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "artel/observe/table.h"

namespace artel::observe {
namespace {

// A stream in memory and a clock that moves when told.
class ProgressTest : public testing::Test {
 protected:
  ~ProgressTest() override {
    std::fclose(stream_);
    std::free(text_);
  }

  ProgressOptions options(bool terminal) {
    return {.stream = stream_, .terminal = terminal, .width = 120, .now = [this] { return now_; }};
  }

  void sleep(double seconds) {
    now_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  std::string written() {
    std::fflush(stream_);
    return {text_, size_};
  }

  static Status at(int64_t step) {
    return {.epoch = 2,
            .epochs = 4,
            .step = step,
            .steps = 1000,
            .samples = step * 64,
            .loss = 0.5,
            .metric_name = "accuracy",
            .metric = 0.875};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_ = open_memstream(&text_, &size_);
  Clock::time_point now_ = Clock::now();
};

TEST_F(ProgressTest, ShowsWorkThatTakesLong) {
  {
    Progress progress(options(false));
    progress.work("testing", 0, 50'000);
    sleep(3);
    progress.work("testing", 6'400, 50'000);  // too soon
    sleep(8);
    progress.work("testing", 12'800, 50'000);
  }
  EXPECT_EQ(written(), "testing  12,800 of 50,000\n");
}

TEST(ProgressLine, HasEnoughDigits) {
  const Status text = {.step = 1, .steps = 1, .tokens = 128};
  EXPECT_NE(plain_line(text, {.samples_per_second = 250}).find("  32,000 tokens/s"),
            std::string::npos);
  const Status slow = {.step = 1, .steps = 1};
  EXPECT_NE(plain_line(slow, {.samples_per_second = 0.0162}).find("  0.0162 samples/s"),
            std::string::npos);
  EXPECT_NE(plain_line(slow, {.samples_per_second = 12.34}).find("  12.3 samples/s"),
            std::string::npos);
}

TEST_F(ProgressTest, TheTimeLeftStartsFromTheForecast) {
  Progress progress(options(false));
  Status status = at(1);
  status.forecast_seconds = 0.2;
  progress.update(status);
  EXPECT_NEAR(progress.pace().seconds_left, 0.2 * 999, 1e-6);
  sleep(30);
  status.step = 101;
  progress.update(status);
  EXPECT_NEAR(progress.pace().seconds_per_step, 0.3, 1e-6);
  EXPECT_NEAR(progress.pace().seconds_left, 0.3 * 899, 1e-4);
  const std::string text = written();
  EXPECT_NE(text.find("step 1/1000  loss 0.5000  accuracy 0.8750  3 min 20 s left\n"), text.npos);
  EXPECT_NE(text.find("300.0 ms a step (forecast 200.0 ms)"), text.npos);
}

// A test of ten seconds after each epoch does not slow the steps down, but has to be waited for.
TEST_F(ProgressTest, TheTimeLeftIncludesTestsBetweenEpochs) {
  Progress progress(options(false));
  Status status = at(240);
  progress.update(status);
  sleep(20);  // ten steps of a second, and a test
  status.step = 250;
  status.epoch = 3;
  status.ended_epochs = 1;
  status.seconds_between_epochs = 10;
  progress.update(status);
  EXPECT_NEAR(progress.pace().seconds_per_step, 1, 1e-6);
  EXPECT_NEAR(progress.pace().seconds_left, 750 + 2 * 10, 1e-4);
}

TEST_F(ProgressTest, WritesPlainLinesAtAnInterval) {
  {
    Progress progress(options(false));
    for (int64_t step = 1; step <= 100; ++step) {
      progress.update(at(step));
      sleep(0.15);
    }
  }
  EXPECT_EQ(
      written(),
      "epoch 2/4  step 1/1000  loss 0.5000  accuracy 0.8750\n"
      "epoch 2/4  step 68/1000  loss 0.5000  accuracy 0.8750  427 samples/s  2 min 20 s left\n");
}

TEST_F(ProgressTest, AlwaysWritesTheLastStep) {
  Progress progress(options(false));
  progress.update(at(1));
  progress.update(at(2));
  sleep(1);
  progress.update(at(1000));
  const std::string text = written();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("step 1000/1000"), text.npos);
  EXPECT_EQ(text.find(" left"), text.npos);
}

TEST_F(ProgressTest, RedrawsOneLineInATerminal) {
  {
    Progress progress(options(true));
    progress.update(at(1));
    progress.update(at(2));  // too soon
    sleep(0.2);
    progress.update(at(3));
    progress.note("saved");
  }
  const std::string text = written();
  EXPECT_EQ(text.find("step 2/"), text.npos);
  EXPECT_TRUE(text.starts_with("\repoch 2/4  "));
  EXPECT_TRUE(text.ends_with("\r\x1b[Ksaved\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

// After a slow first step the pace follows the recent steps.
TEST_F(ProgressTest, PaceFollowsTheLastSteps) {
  Progress progress(options(true));
  progress.update(at(1));
  sleep(100);
  for (int64_t step = 2; step <= 100; ++step) {
    progress.update(at(step));
    sleep(1);
  }
  EXPECT_NEAR(progress.pace().samples_per_second, 64, 0.01);
  EXPECT_NEAR(progress.pace().seconds_left, 900, 0.1);
}

TEST_F(ProgressTest, FitsIntoTheTerminal) {
  const Pace pace = {.samples_per_second = 12.34, .seconds_left = 59};
  const std::string wide = live_line(at(500), pace, 200, false);
  EXPECT_EQ(wide,
            "epoch 2/4  ############------------  step 500/1000  loss 0.5000  accuracy 0.8750  "
            "12.3 samples/s  59.0 s left");
  for (int width = 0; width < 200; ++width) {
    const std::string line = live_line(at(500), pace, width, false);
    EXPECT_LE(line.size(), static_cast<size_t>(width));
    EXPECT_TRUE(wide.starts_with(line));
  }
  EXPECT_NE(live_line(at(500), pace, 200, true).find("━"), std::string::npos);
}

TEST(Table, AlignsColumns) {
  Table table({"layer", "parameters", "größe"});
  table.add({"conv1", "1,792", "4 KiB"});
  table.add({"fc", "131,072", "0.5 MiB"});
  table.add({"total"});
  EXPECT_EQ(table.text(),
            "layer  parameters    größe\n"
            "-----  ----------  -------\n"
            "conv1       1,792    4 KiB\n"
            "fc        131,072  0.5 MiB\n"
            "total\n");
  EXPECT_ANY_THROW(table.add({"1", "2", "3", "4"}));
}

}  // namespace
}  // namespace artel::observe
