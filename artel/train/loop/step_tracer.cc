#include "artel/train/loop/step_tracer.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "artel/train/loop/agreement.h"
#include "artel/train/step/workload.h"
#include "artel/train/trainer_state.h"

namespace artel {

void StepTracer::meet(comm::Group* group) {
  if (!options_.timeline) return;
  if (timeline_.recording())
    timeline_.meet(group);
  else
    timeline_.start(group);
}

void StepTracer::record(Workload& workload) {
  if (timeline_.recording()) workload.record(&timeline_);
}

void StepTracer::follow(Workload& workload) {
  comm::Group* const group = s_.cluster.group();
  if (!group) due_ = s_.trace > 0;
  const bool due = std::exchange(due_, false);
  if (traces()) {
    if (s_.step - first_step_ + 1 >= steps_) end(workload);
  } else if (options_.timeline) {
    refuse("all of this run is being traced: it was started with --trace");
  } else if (s_.alone && group) {
    refuse(
        "its workers train independently and have no common steps; start it with "
        "--trace instead");
  } else if (due) {
    begin(workload);
  } else if (workload.lane_partition() && workload.lane_partition()->own().size() == 0) {
    refuse("this worker has no lanes, so it cannot send the request with its sums");
  }
}

void StepTracer::begin(Workload& workload) {
  comm::Group* const group = s_.cluster.group();
  first_step_ = s_.step + 1;  // from here on, losing a worker ends the trace
  std::vector<int64_t> wanted = {s_.trace.exchange(0)};
  if (group) {
    const int64_t own = wanted.front();
    wanted.resize(static_cast<size_t>(group->size()));
    group->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(wanted)),
                      {}, {.label = "requests for a trace"});
  }
  steps_ = std::ranges::max(wanted);
  all_get_it_ = std::ranges::any_of(std::span(wanted).subspan(1), [](int64_t n) { return n > 0; });
  timeline_.start(group);
  workload.record(&timeline_);
}

void StepTracer::end(Workload& workload) {
  workload.record(nullptr);
  StepTrace trace = {.first_step = first_step_,
                     .steps = s_.step - first_step_ + 1,
                     .timeline = timeline_.stop(s_.cluster.group(), all_get_it_)};
  first_step_ = -1;
  if ((s_.cluster.rank() == 0 || all_get_it_) && options_.after_trace)
    options_.after_trace(std::move(trace));
}

void StepTracer::finish(Workload& workload) {
  if (traces()) end(workload);
}

// Reports on the workers with a request.
void StepTracer::refuse(const std::string& why) {
  if (s_.trace.exchange(0) > 0 && options_.after_trace) options_.after_trace({.refused = why});
}

void StepTracer::drop(bool leads) {
  due_ = false;
  if (leads && s_.cluster.rank() != 0) s_.trace = 0;  // its requester was told that it has ended
  if (std::exchange(first_step_, -1) < 0) return;
  timeline_.drop();
  if ((leads || all_get_it_) && options_.after_trace)
    options_.after_trace({.refused = "workers joined or left during the trace; try again"});
}

}  // namespace artel
