// Pipeline schedules: which worker computes which lane of which stage, in which order.
//
// The network is cut into stages, stage s on worker s mod N, and every lane passes through all of
// them: forward from the first to the last, backward from the last to the first. A schedule is only
// an order; it never changes what is computed, so all of them give the same bits. Each is a pure
// function in a file of its own under plan/schedules, with a line in plan/schedules/registry.cc.
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
  input_gradient,   // what the stage before waits for
  weight_gradient,  // what nobody waits for: it fills the gaps
};

// Whether the activations of the lane are no longer needed after it.
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
  // How many workers come after this one.
  int behind(int worker) const { return workers - 1 - worker; }
};

struct ScheduleKind {
  std::string help;
  bool several_stages = false;  // for workers that have more than one
  std::function<std::vector<Task>(const PipelineShape&, int worker)> tasks;
  // A bound of the activations that the worker keeps at a time: those of one lane in one stage
  // count as one. They are kept from the forward pass until the last gradient is computed.
  std::function<int(const PipelineShape&, int worker)> keeps;
};

struct Schedule {
  std::string name;
  PipelineShape shape;
  std::vector<std::vector<Task>> tasks;  // of each worker, in order
};

std::vector<std::string> schedule_names();
const ScheduleKind& schedule_kind(std::string_view name);

// Throws for an unknown name and for a shape that it does not suit.
Schedule make_schedule(std::string_view name, const PipelineShape& shape);

// The tasks that must be finished before this one begins. Those of another stage send what they
// have computed.
std::vector<Task> needed_by(const Schedule& schedule, const Task& task);

// The most activations that each worker keeps at a time.
std::vector<int> most_kept(const Schedule& schedule);

// Throws an internal error unless each task is there once, on the worker that has the stage, no
// worker waits forever, and none keeps more than its kind promises.
void check_schedule(const Schedule& schedule);

}  // namespace artel::plan
