#include "artel/observe/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "tests/support/temporary_folder.h"

namespace artel::observe {
namespace {

using Json = nlohmann::json;

TEST(Trace, WritesChromeEvents) {
  Trace trace;
  trace.name_process(1, "worker 1");
  trace.name_thread(1, 2, "lane \"2\"");
  trace.add(
      {.name = "late", .category = "wait", .process = 1, .thread = 2, .begin = 2, .duration = 1});
  trace.add({.name = "conv1",
             .category = "compute",
             .process = 1,
             .thread = 2,
             .begin = 0.5,
             .duration = 0.25});
  const Json events = Json::parse(trace.json())["traceEvents"];
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0], Json::parse(R"({"ph": "M", "name": "process_name", "pid": 1, "tid": 0,
                                       "args": {"name": "worker 1"}})"));
  EXPECT_EQ(events[1]["args"]["name"], "lane \"2\"");
  EXPECT_EQ(events[2], Json::parse(R"({"ph": "X", "name": "conv1", "cat": "compute", "pid": 1,
                                       "tid": 2, "ts": 500000.0, "dur": 250000.0})"));
  EXPECT_EQ(events[3]["name"], "late");
}

TEST(Trace, ReadsWhatItHasWritten) {
  const TemporaryFolder folder;
  Trace trace;
  trace.name_process(1, "worker \"1\"");
  trace.set_clock_error(12e-6);
  trace.add({.name = "conv\n1",
             .category = "compute",
             .process = 1,
             .thread = 3,
             .begin = 0.25,
             .duration = 0.125});
  trace.save(folder / "trace.json");
  Trace again;
  again.load(folder / "trace.json");
  ASSERT_EQ(again.events().size(), 1u);
  const TraceEvent event = again.events()[0];
  EXPECT_EQ(event.name, "conv\n1");
  EXPECT_EQ(event.category, "compute");
  EXPECT_EQ(event.process, 1);
  EXPECT_EQ(event.thread, 3);
  EXPECT_DOUBLE_EQ(event.begin, 0.25);
  EXPECT_DOUBLE_EQ(event.duration, 0.125);
  EXPECT_EQ(again.process_name(1), "worker \"1\"");
  EXPECT_EQ(again.process_name(2), "worker 2");
  EXPECT_DOUBLE_EQ(again.clock_error(), 12e-6);
  EXPECT_EQ(again.json(), trace.json());
}

TEST(Trace, RefusesOtherFiles) {
  const TemporaryFolder folder;
  Trace trace;
  EXPECT_THROW(trace.load(folder / "nothing.json"), Error);
  for (const char* text : {"", "{", "3", "{}", "{\"traceEvents\": 3}", "[3]",
                           "[{\"ph\": \"X\", \"name\": 3}]", "[{\"ph\": \"X\"}]"}) {
    write_file_atomically(folder / "file.json", text);
    EXPECT_THROW(trace.load(folder / "file.json"), Error) << text;
  }
}

TEST(Trace, ScopesMeasureTheirLifetime) {
  Trace trace;
  const Clock::time_point origin = Clock::now();
  {
    const TraceScope outer(&trace, origin, {.name = "outer"});
    const TraceScope inner(&trace, origin, {.name = "inner"});
    const TraceScope nothing(nullptr, origin, {.name = "nothing"});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const auto events = trace.events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "inner");
  EXPECT_GE(events[0].duration, 0.002);
  EXPECT_GE(events[1].duration, events[0].duration);
  EXPECT_LE(events[1].begin, events[0].begin);
}

TEST(Trace, ManyThreadsAdd) {
  Trace trace;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&trace, t] {
      for (int i = 0; i < 100; ++i) trace.add({.name = "step", .thread = t});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.events().size(), 400u);
}

}  // namespace
}  // namespace artel::observe
