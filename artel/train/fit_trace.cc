// Traces of a few steps on demand. That worker 0 wants one travels to all workers with the sums of
// a step, so all begin with the same one, and nobody asks when nobody wants to know.
#include "artel/train/fit_loop.h"

namespace artel {

// Between two steps.
void FitLoop::follow_trace() {
  comm::Group* const group = s_.cluster.group();
  if (!group) trace_due_ = s_.trace > 0;
  const bool due = std::exchange(trace_due_, false);
  if (traces()) {
    if (s_.step - trace_from_ + 1 >= trace_steps_) end_trace();
  } else if (options_.timeline) {
    refuse_trace("all of this run is being traced: it was started with --trace");
  } else if (s_.alone && group) {
    refuse_trace(
        "its workers train apart, so there are no steps that all make; start it with "
        "--trace instead");
  } else if (due) {
    begin_trace();
  } else if (workload_->division() && workload_->division()->own().size() == 0) {
    refuse_trace("worker 0 has no lanes, with whose sums the others would learn of it");
  }
}

// Collective, like end_trace.
void FitLoop::begin_trace() {
  comm::Group* const group = s_.cluster.group();
  trace_from_ = s_.step + 1;  // from here on, a worker that is lost ends the trace
  const std::string wanted = std::to_string(s_.trace.exchange(0));
  trace_steps_ = std::stoll(group ? broadcast_text(*group, wanted) : wanted);
  timeline_.start(group);
  workload_->record(&timeline_);
}

void FitLoop::end_trace() {
  workload_->record(nullptr);
  StepTrace trace = {.first_step = trace_from_,
                     .steps = s_.step - trace_from_ + 1,
                     .timeline = timeline_.stop(s_.cluster.group())};
  trace_from_ = -1;
  if (s_.cluster.rank() == 0 && options_.after_trace) options_.after_trace(std::move(trace));
}

// At worker 0; elsewhere nobody has asked.
void FitLoop::refuse_trace(const std::string& why) {
  if (s_.trace.exchange(0) > 0 && options_.after_trace) options_.after_trace({.refused = why});
}

// In another membership, a trace that was begun has no end.
void FitLoop::drop_trace() {
  trace_due_ = false;
  if (s_.cluster.rank() != 0) s_.trace = 0;  // whoever is worker 0 now was not asked
  if (std::exchange(trace_from_, -1) < 0) return;
  timeline_.drop();
  if (leads_ && options_.after_trace)
    options_.after_trace({.refused = "workers came or went meanwhile; try again"});
}

}  // namespace artel
