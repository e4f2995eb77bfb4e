// Pipeline schedules: which worker computes which lane of which stage, in which order.
//
//   // One of your own, as cluster.schedule = "patient": here, the same as GPipe's.
//   artel::plan::register_schedule("patient", artel::plan::schedule_kind("gpipe"));
//
// The network is cut into stages, stage s on worker s mod N. Every lane passes forward from the
// first to the last stage and backward from the last to the first. A schedule determines only the
// order of tasks, so all schedules give the same bits. Each is a pure function in its own file in
// plan/schedules, with a line in plan/schedules/registry.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace artel::plan {

enum class Work : uint8_t {
  forward,
  backward,         // both gradients
  input_gradient,   // needed by the preceding stage
  weight_gradient,  // needed by no other stage; fills idle time
};

// True if the activations of the lane are no longer needed after this task.
inline bool frees_activations(Work work) {
  return work == Work::backward || work == Work::weight_gradient;
}

struct Task {
  Work work = Work::forward;
  int lane = 0;
  int stage = 0;

  bool operator==(const Task&) const = default;
};

struct PipelineShape {
  int workers = 1;
  int stages = 1;  // a multiple of the workers
  int lanes = 1;

  int stages_of_a_worker() const { return stages / workers; }
  int worker_of(int stage) const { return stage % workers; }
  // Number of workers after this one.
  int behind(int worker) const { return workers - 1 - worker; }
};

struct ScheduleKind {
  std::string help;
  bool several_stages = false;  // supports several stages per worker
  std::function<std::vector<Task>(const PipelineShape&, int worker)> tasks;
  // An upper bound on the activations that the worker holds at a time. The activations of one lane
  // in one stage count as one; they are held from the forward pass until the last gradient is
  // computed.
  std::function<int(const PipelineShape&, int worker)> keeps;
};

struct Schedule {
  std::string name;
  PipelineShape shape;
  std::vector<std::vector<Task>> tasks;  // by worker, in order
};

// Registers a custom schedule for `cluster.schedule`. Replaces one that the program registered
// earlier. Throws for a built-in name. All workers must register the same schedules.
void register_schedule(const std::string& name, ScheduleKind kind);

std::vector<std::string> schedule_names();
const ScheduleKind& schedule_kind(std::string_view name);

// Throws for an unknown name or an unsupported shape.
Schedule make_schedule(std::string_view name, const PipelineShape& shape);

// The tasks that must be finished before this one starts. Tasks of other stages send their results.
std::vector<Task> needed_by(const Schedule& schedule, const Task& task);

// Peak number of activations held by each worker.
std::vector<int> most_kept(const Schedule& schedule);

// Throws an internal error unless each task occurs exactly once on the worker of its stage, the
// schedule is free of deadlocks, and no worker exceeds the bound of its kind.
void check_schedule(const Schedule& schedule);

}  // namespace artel::plan
