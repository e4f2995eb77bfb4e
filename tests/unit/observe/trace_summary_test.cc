#include "artel/observe/trace_summary.h"

#include <gtest/gtest.h>

#include "artel/base/json_values.h"
#include "artel/observe/intervals.h"

namespace artel::observe {
namespace {

constexpr int kMain = TraceThread::kMain, kWire = TraceThread::kWire,
              kLane = TraceThread::kFirstLane;

void add(Trace& trace, int process, int thread, const char* category, const std::string& name,
         double begin, double end) {
  trace.add({name, category, process, thread, begin, end - begin});
}

// Two workers in steps of 10 seconds: worker 0 computes for 4 and waits, worker 1 waits for data
// and computes for 7; then the sum travels for 1 and the update takes 1, with 1 of something else.
void add_step(Trace& trace, int64_t number, double at) {
  for (const int process : {0, 1}) {
    const double computed = at + (process == 0 ? 4 : 7), data = process == 0 ? 0 : 2;
    add(trace, process, kMain, "step", "step " + std::to_string(number), at, at + 10);
    add(trace, process, kMain, "wait", "data", at, at + data);
    add(trace, process, kMain, "compute", "forward and backward", at + data, computed);
    add(trace, process, kLane, "compute", "dense", at + data, computed - 1);
    add(trace, process, kLane, "compute", "relu", computed - 1, computed);
    add(trace, process, kWire, "wire", "bucket 0", computed, at + 8);
    add(trace, process, kMain, "wait", "bucket 0", computed, at + 8);
    add(trace, process, kMain, "update", "update", at + 8, at + 9);
  }
}

double share(const TraceSummary::Parts& parts, StepPart part) {
  return parts[static_cast<size_t>(part)];
}

TEST(Intervals, AreUnitedAndCut) {
  const Intervals set = united({{5, 6}, {0, 1}, {0.5, 2}, {3, 3}});
  ASSERT_EQ(set.size(), 2u);
  EXPECT_EQ(set[0].end, 2);
  std::string text;
  cut({1, 5.5}, set, [&](const Interval& part, bool inside) {
    text += fmt::format("{}-{}{} ", part.begin, part.end, inside ? "*" : "");
  });
  EXPECT_EQ(text, "1-2* 2-5 5-5.5* ");
}

TEST(TraceSummary, SaysWhatTookTheStep) {
  Trace trace;
  trace.set_clock_error(1e-5);
  add_step(trace, 11, 100);
  add_step(trace, 12, 110);
  const TraceSummary summary = summarize(trace).value();
  EXPECT_EQ(summary.first_step, 11);
  EXPECT_EQ(summary.steps, 2);
  EXPECT_DOUBLE_EQ(summary.step_seconds, 10);
  ASSERT_EQ(summary.workers.size(), 2u);
  const TraceSummary::Worker &first = summary.workers[0], &second = summary.workers[1];
  EXPECT_NEAR(share(first.parts, StepPart::computing), 0.4, 1e-9);
  EXPECT_NEAR(share(first.parts, StepPart::workers), 0.3, 1e-9);  // until the other had begun,
  EXPECT_NEAR(share(first.parts, StepPart::wire), 0.1, 1e-9);     // and from then on
  EXPECT_NEAR(share(first.parts, StepPart::updating), 0.1, 1e-9);
  EXPECT_NEAR(share(first.parts, StepPart::other), 0.1, 1e-9);
  EXPECT_NEAR(share(second.parts, StepPart::computing), 0.5, 1e-9);
  EXPECT_NEAR(share(second.parts, StepPart::data), 0.2, 1e-9);
  EXPECT_NEAR(share(second.parts, StepPart::workers), 0, 1e-9);
  EXPECT_NEAR(share(second.parts, StepPart::wire), 0.1, 1e-9);
  EXPECT_EQ(first.awaited, 0);
  EXPECT_EQ(second.awaited, 2);
  EXPECT_NEAR(summary.waited_seconds, 3, 1e-9);
  EXPECT_NEAR(summary.without_waiting, 10 / 8.5, 1e-9);
  EXPECT_NEAR(summary.without_wire, 10 / 9.0, 1e-9);
  EXPECT_NEAR(summary.without_both, 10 / 7.5, 1e-9);
  EXPECT_NEAR(summary.without_data, 10 / 8.0, 1e-9);  // then worker 1 works for 7 of 9, not 9
  ASSERT_EQ(summary.ops.size(), 2u);
  EXPECT_EQ(summary.ops[0].name, "dense");
  EXPECT_NEAR(summary.ops[0].share, 7.0 / 9, 1e-9);
  EXPECT_NEAR(summary.ops[1].seconds, 2, 1e-9);
}

TEST(TraceSummary, WordsAndJson) {
  Trace trace;
  trace.name_process(1, "worker 3");
  add_step(trace, 11, 100);
  const TraceSummary summary = summarize(trace).value();
  const std::string text = to_text(summary, 1000);
  EXPECT_NE(text.find("A step takes 10 s (1 step from step 11 on, 2 workers): computing 45.0 %"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("In 1 of 1 step, the others waited for worker 3"), std::string::npos) << text;
  EXPECT_NE(text.find("1.18x without waiting for workers, 1.11x without the wire, 1.33x without "
                      "both, 1.25x without waiting for data"),
            std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(json["workers"][1]["name"], "worker 3");
  EXPECT_NEAR(json["workers"][1]["shares"]["waiting_for_data"].get<double>(), 0.2, 1e-9);
  const auto& row = json["timeline"]["workers"][0]["pieces"];
  EXPECT_EQ(row[0][0], "computing");
  EXPECT_EQ(row[1][0], "waiting_for_workers");
  EXPECT_NEAR(row[1][1].get<double>(), 4, 1e-9);
  EXPECT_NEAR(row[1][2].get<double>(), 3, 1e-9);
}

TEST(TraceSummary, LanesThatWaitForATensorGroup) {
  Trace trace;
  add(trace, 0, kMain, "step", "step 1", 0, 10);
  add(trace, 0, kMain, "compute", "forward and backward", 0, 10);
  add(trace, 0, kLane, "compute", "dense", 0, 4);
  add(trace, 0, kLane, "wait", "shard_sum", 4, 7);
  add(trace, 0, kLane + 1, "compute", "dense", 0, 5);  // one second of that wait costs nothing
  const TraceSummary summary = summarize(trace).value();
  EXPECT_NEAR(share(summary.parts, StepPart::computing), 0.8, 1e-9);
  EXPECT_NEAR(share(summary.parts, StepPart::workers), 0.2, 1e-9);
}

TEST(TraceSummary, OnlyStepsThatAllHaveMade) {
  Trace trace;
  add_step(trace, 1, 0);
  add(trace, 0, kMain, "step", "step 2", 10, 11);
  EXPECT_EQ(summarize(trace).value().steps, 1);
  Trace none;
  EXPECT_FALSE(summarize(none));
  add(none, 0, kMain, "compute", "forward and backward", 0, 1);
  add(none, 0, kMain, "step", "step one", 0, 1);
  EXPECT_FALSE(summarize(none));
}

}  // namespace
}  // namespace artel::observe
