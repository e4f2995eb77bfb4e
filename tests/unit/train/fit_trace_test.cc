// Traces of a few steps on demand.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/train/workers.h"

namespace artel {
namespace {

struct Traced {
  std::vector<StepTrace> traces;
  std::vector<float> weights;
};

// Worker `who` asks for `steps` after step `asked`; 0: never.
Traced train_traced(int workers, const Setting& setting, int64_t asked, int64_t steps,
                    bool timeline = false, int who = 0) {
  Traced traced;
  on_workers(workers, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options(setting));
    FitOptions fit = {.batch_size = setting.batch, .epochs = 0, .steps = 20, .timeline = timeline};
    fit.after_step.push_back([&](const TrainingState& state) {
      if (rank == who && state.step == asked) trainer.request_trace(steps);
      return true;
    });
    fit.after_trace = [&](StepTrace trace) {
      EXPECT_TRUE(who != 0 || rank == 0) << rank;  // all get it if another worker has asked
      if (rank != who) return;
      traced.traces.push_back(std::move(trace));
    };
    trainer.fit(samples(), fit);
    const std::vector<float> weights = flat(trainer.weights());
    if (rank == 0) traced.weights = weights;
  });
  return traced;
}

std::set<std::string> steps_of(const StepTrace& trace, int worker) {
  std::set<std::string> names;
  for (const TimelineSpan& span : trace.timeline.spans)
    if (span.worker == worker && span.category == "step") names.insert(span.name);
  return names;
}

TEST(FitTrace, AllWorkersRecordTheSameSteps) {
  for (const int64_t local_steps : {1, 2})
    for (const int workers : {1, 2, 3}) {
      if (workers == 1 && local_steps > 1) continue;
      const Setting setting = {.local_steps = local_steps};
      const Traced traced = train_traced(workers, setting, 5, 3);
      ASSERT_EQ(traced.traces.size(), 1u) << workers;
      const StepTrace& trace = traced.traces[0];
      EXPECT_EQ(trace.refused, "");
      EXPECT_EQ(trace.steps, 3);
      EXPECT_GT(trace.first_step, 5);
      std::set<std::string> expected;
      for (int64_t i = 0; i < 3; ++i)
        expected.insert("step " + std::to_string(trace.first_step + i));
      for (int worker = 0; worker < workers; ++worker)
        EXPECT_EQ(steps_of(trace, worker), expected) << worker << " of " << workers;
      for (const TimelineSpan& span : trace.timeline.spans) EXPECT_GE(span.begin, 0) << span.name;
    }
}

TEST(FitTrace, AnyWorkerCanAsk) {
  for (const int64_t local_steps : {1, 2}) {
    const Traced traced = train_traced(3, {.local_steps = local_steps}, 5, 3, false, 2);
    ASSERT_EQ(traced.traces.size(), 1u);
    EXPECT_EQ(traced.traces[0].refused, "");
    for (int worker = 0; worker < 3; ++worker)
      EXPECT_EQ(steps_of(traced.traces[0], worker).size(), 3u) << worker;
  }
}

TEST(FitTrace, ChangesNoBits) {
  for (const int workers : {1, 3})
    EXPECT_TRUE(same_bits(train_traced(workers, {}, 5, 4).weights,
                          train_traced(workers, {}, 0, 0).weights));
}

TEST(FitTrace, EndsWithTheFit) {
  const Traced traced = train_traced(2, {}, 16, 100);
  ASSERT_EQ(traced.traces.size(), 1u);
  EXPECT_EQ(traced.traces[0].first_step + traced.traces[0].steps, 21);
  EXPECT_EQ(steps_of(traced.traces[0], 1).size(), static_cast<size_t>(traced.traces[0].steps));
}

TEST(FitTrace, NotWhereAllIsTracedAnyway) {
  const Traced traced = train_traced(2, {}, 5, 3, true);
  ASSERT_EQ(traced.traces.size(), 1u);
  EXPECT_NE(traced.traces[0].refused.find("--trace"), std::string::npos);
}

}  // namespace
}  // namespace artel
