#include "artel/observe/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

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
