// How long a schedule takes: a simulation by given times, without running anything.
//
// A worker does its tasks in order, each as soon as what it needs has arrived. What a task computes
// is sent when it ends; sending overlaps computing, but of one stage's messages in one direction
// only one is on its way at a time.
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
  // Of sending one lane's values, or their gradients, over the cut after each stage; empty: none.
  std::vector<double> transfers = {};

  // A worker's share of each task takes a unit of time, however many stages it has.
  static PipelineCosts equal(const PipelineShape& shape, const StageTimes& times = {});
};

struct TaskSpan {
  Task task;
  double begin = 0, end = 0;
};

struct Simulation {
  std::vector<std::vector<TaskSpan>> spans;  // of the first step, by worker
  double seconds = 0;        // of a step among others: a worker that has finished begins the next
  double bubble = 0;         // the part of it for which a worker idles, on average
  std::vector<double> busy;  // seconds of each worker

  // From now on `seconds` and `bubble` are those of workers that begin each step together.
  void wait_for_all();
  // A step takes so long.
  void take(double seconds);
};

// Throws an internal error if workers would wait for each other for ever.
Simulation simulate(const Schedule& schedule, const PipelineCosts& costs);

// Whether it is faster by more than would be worth a less simple schedule.
bool is_faster(const Simulation& one, const Simulation& other);

// The fastest schedule for the workers, stages and lanes among those that `fits` accepts. Throws if
// it accepts none.
Schedule fastest_schedule(const PipelineShape& shape, const PipelineCosts& costs,
                          const std::function<bool(const Schedule&)>& fits);

}  // namespace artel::plan
