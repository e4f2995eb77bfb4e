#include "artel/run/report/trace_request.h"

#include <gtest/gtest.h>

#include <atomic>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/run/report/trace_desk.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

constexpr auto kMoment = std::chrono::milliseconds(10);

// Waits, for at most a minute, for an answer with this state.
TraceAnswer answer_with(const RunFolder& folder, const std::string& state) {
  for (int tries = 0; tries < 6000; ++tries) {
    if (const auto answer = read_trace_answer(folder); answer && answer->state == state)
      return *answer;
    std::this_thread::sleep_for(kMoment);
  }
  ADD_FAILURE() << "no answer " << state;
  return {};
}

StepTrace one_step() {
  return {.first_step = 5,
          .steps = 1,
          .timeline = {.spans = {{.name = "step 5", .category = "step", .seconds = 1}}}};
}

TEST(TraceDesk, AnswersWithFiles) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path());
  std::atomic<int64_t> asked{0};
  TraceDesk desk(run, [&](int64_t steps) { asked = steps; });
  write_file_atomically(run.trace_request(), to_json(TraceRequest{"one", 7}));
  EXPECT_EQ(answer_with(run, "recording").id, "one");
  while (asked == 0) std::this_thread::sleep_for(kMoment);
  EXPECT_EQ(asked, 7);
  EXPECT_FALSE(std::filesystem::exists(run.trace_request()));
  desk.hand_in(one_step(), {"worker 3"});
  EXPECT_EQ(answer_with(run, "done").id, "one");
  EXPECT_NE(read_file(run.trace()).find("worker 3"), std::string::npos);
  EXPECT_NE(read_file(run.trace_summary()).find("\"first_step\":5"), std::string::npos);
  write_file_atomically(run.trace_request(), to_json(TraceRequest{"two", 7}));
  EXPECT_EQ(answer_with(run, "recording").id, "two");
  desk.hand_in({.refused = "not now"}, {"worker 3"});
  EXPECT_EQ(answer_with(run, "refused").text, "not now");
}

TEST(TraceDesk, LeavesNobodyWaiting) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path());
  write_file_atomically(run.trace_answer(), to_json(TraceAnswer{"zero", "recording", ""}));
  {
    TraceDesk desk(run, [](int64_t) {});
    EXPECT_EQ(answer_with(run, "refused").id, "zero");
    write_file_atomically(run.trace_request(), to_json(TraceRequest{"one", 7}));
    EXPECT_EQ(answer_with(run, "recording").id, "one");
  }
  EXPECT_EQ(read_trace_answer(run)->id, "one");
  EXPECT_EQ(read_trace_answer(run)->text, "the run has ended");
}

TEST(TraceDesk, DropsRequestsThatItCannotRead) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path());
  TraceDesk desk(run, [](int64_t) { FAIL(); });
  for (const char* text : {"", "3", "{}", R"({"id": "x", "steps": 0})", R"({"id": 3, "steps": 5})",
                           R"({"id": "x", "steps": 1000000000})"}) {
    write_file_atomically(run.trace_request(), text);
    int tries = 0;
    while (std::filesystem::exists(run.trace_request()) && ++tries < 6000)
      std::this_thread::sleep_for(kMoment);
    EXPECT_FALSE(std::filesystem::exists(run.trace_request())) << text;
  }
  EXPECT_FALSE(read_trace_answer(run));
}

TEST(TraceRequest, OnlyOfARunThatIsBeingTrained) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path());
  EXPECT_THROW(trace_run(folder / "nothing", {}), Error);
  write_file_atomically(run.config(), "");
  try {
    trace_run(run.path(), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("only a run that is being trained can be traced"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(run.trace_request()));
}

}  // namespace
}  // namespace artel
