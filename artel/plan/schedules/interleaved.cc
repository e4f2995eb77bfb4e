// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters" (2021): with V
// stages a worker, N apart, a lane comes by V times, and the pipeline fills and drains V times as
// fast. The price is V times the messages, and more activations than 1f1b keeps.
//
// Lanes go through in groups: all of a group through one stage, then all through the worker's next.
// A group has at least N lanes, so that the first is back when the last has left; the lanes are
// spread evenly over the groups, so that no group is too small whatever their number.
#include <algorithm>

#include "artel/plan/schedules/kinds.h"

namespace artel::plan {
namespace {

int groups_of(const PipelineShape& shape) { return std::max(1, shape.lanes / shape.workers); }

// In the order of one direction; the other has the stages reversed.
std::vector<Task> passes(const PipelineShape& shape, int worker, Work work) {
  std::vector<Task> tasks;
  const int groups = groups_of(shape), rounds = shape.stages_of_a_worker();
  for (int group = 0; group < groups; ++group)
    for (int i = 0; i < rounds; ++i) {
      const int round = work == Work::forward ? i : rounds - 1 - i;
      for (int lane = shape.lanes * group / groups; lane < shape.lanes * (group + 1) / groups;
           ++lane)
        tasks.push_back({work, lane, round * shape.workers + worker});
    }
  return tasks;
}

// Forward passes before the first backward: all of a group but those of its last stage, and what it
// takes until the first gradient comes back.
int passes_ahead(const PipelineShape& shape, int worker) {
  const int groups = groups_of(shape);
  const int largest_group = (shape.lanes + groups - 1) / groups;
  const int ahead = 2 * shape.behind(worker) + (shape.stages_of_a_worker() - 1) * largest_group + 1;
  return std::min(shape.lanes * shape.stages_of_a_worker(), ahead);
}

std::vector<Task> interleave(const PipelineShape& shape, int worker) {
  const std::vector<Task> forward = passes(shape, worker, Work::forward);
  auto next = forward.begin() + passes_ahead(shape, worker);
  std::vector<Task> tasks(forward.begin(), next);
  for (const Task& backward : passes(shape, worker, Work::backward)) {
    tasks.push_back(backward);
    if (next != forward.end()) tasks.push_back(*next++);
  }
  return tasks;
}

}  // namespace

ScheduleKind interleaved() {
  return {.help = "1f1b with several stages a worker",
          .several_stages = true,
          .tasks = interleave,
          .keeps = passes_ahead};
}

}  // namespace artel::plan
