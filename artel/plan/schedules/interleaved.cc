// Interleaved 1F1B (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
// Clusters", 2021). Each worker has V stages, N apart, so the pipeline fills and drains V times as
// fast. Costs V times the messages and more activations than 1f1b.
//
// Lanes pass in groups: all lanes of a group pass one stage, then the worker's next stage. A group
// has at least N lanes, so that the first is back when the last has left. Lanes are spread evenly
// over the groups.
#include <algorithm>

#include "artel/plan/schedules/kinds.h"

namespace artel::plan {
namespace {

int groups_of(const PipelineShape& shape) { return std::max(1, shape.lanes / shape.workers); }

// Tasks of one direction in order. The other direction reverses the stages.
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

// Number of forward passes before the first backward pass: those of a group except its last stage,
// plus those until the first gradient returns.
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
