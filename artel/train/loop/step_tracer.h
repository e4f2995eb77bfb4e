// Traces a few steps on demand, or a whole fit. The request of a worker travels to all others with
// the sums of a step, so all begin with the same step, without additional messages. Worker 0 gets
// the trace; if another worker has asked for it, all do. Internal to train.
#pragma once

#include <string>

#include "artel/train/loop/timeline.h"
#include "artel/train/trainer.h"

namespace artel {

class Workload;
struct TrainerState;

class StepTracer {
 public:
  // Borrows both.
  StepTracer(TrainerState& state, const FitOptions& options) : s_(state), options_(options) {}

  Timeline& timeline() { return timeline_; }

  // Call when a membership begins. Collective.
  void meet(comm::Group* group);
  // Records the steps of this workload from now on, if a trace is active.
  void record(Workload& workload);
  // Call after a step. `due`: all workers have received a request.
  void announce(bool due) { due_ = due; }
  // Call between two steps. Begins, ends, or refuses a trace. Beginning and ending are collective.
  void follow(Workload& workload);
  // Call after the last step. Collective.
  void finish(Workload& workload);
  // Drops an unfinished trace when the membership changes. `leads`: this worker was worker 0.
  void drop(bool leads);

 private:
  bool traces() const { return first_step_ >= 0; }
  void begin(Workload& workload);
  void end(Workload& workload);
  void refuse(const std::string& why);

  TrainerState& s_;
  const FitOptions& options_;
  Timeline timeline_;
  bool due_ = false;
  int64_t first_step_ = -1;  // -1 while no trace is active
  int64_t steps_ = 0;        // requested steps
  bool all_get_it_ = false;  // a worker other than worker 0 has asked
};

}  // namespace artel
