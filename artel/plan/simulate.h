// Simulates a schedule with given task times.
//
// A worker runs its tasks in order, each as soon as its inputs have arrived. Results are sent when
// a task ends. Sending overlaps computation, but each stage has only one message in flight per
// direction.
#pragma once

#include "artel/plan/schedule.h"

namespace artel::plan {

// Seconds of one lane in one stage.
struct StageTimes {
  double forward = 1, input_gradient = 1, weight_gradient = 1;

  double of(Work work) const;
  double total() const { return forward + input_gradient + weight_gradient; }
};

struct PipelineCosts {
  std::vector<StageTimes> stages;
  // Seconds to send one lane's values, or their gradients, over the cut after each stage. Empty
  // means no time.
  std::vector<double> transfers = {};

  // Equal costs. A worker's tasks of one kind take one unit of time per lane, divided by its number
  // of stages.
  static PipelineCosts equal(const PipelineShape& shape, const StageTimes& times = {});
};

struct TaskSpan {
  Task task;
  double begin = 0, end = 0;
};

struct Simulation {
  std::vector<std::vector<TaskSpan>> spans;  // first step, by worker
  double seconds = 0;        // per step in steady state; a finished worker starts the next step
  double bubble = 0;         // mean idle share of a step
  std::vector<double> busy;  // seconds of each worker

  // Sets `seconds` and `bubble` for workers that start each step together.
  void wait_for_all();
  // Sets the time of a step.
  void take(double seconds);
};

// Throws an internal error on deadlock.
Simulation simulate(const Schedule& schedule, const PipelineCosts& costs);

// True if `one` is faster by enough to justify a more complex schedule.
bool is_faster(const Simulation& one, const Simulation& other);

// The fastest schedule for the shape among those that `fits` accepts. Throws if it accepts none.
Schedule fastest_schedule(const PipelineShape& shape, const PipelineCosts& costs,
                          const std::function<bool(const Schedule&)>& fits);

}  // namespace artel::plan
