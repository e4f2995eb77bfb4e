// 1F1B (Narayanan et al., "PipeDream", 2019). A worker makes forward passes until the first
// gradient returns, then alternates backward and forward passes. Idles as long as GPipe but holds
// the activations of at most N lanes.
#include <algorithm>

#include "artel/plan/schedules/kinds.h"

namespace artel::plan {
namespace {

int lanes_ahead(const PipelineShape& shape, int worker) {
  return std::min(shape.lanes, shape.behind(worker) + 1);
}

std::vector<Task> alternate(const PipelineShape& shape, int worker) {
  std::vector<Task> tasks;
  int forward = 0;
  while (forward < lanes_ahead(shape, worker)) tasks.push_back({Work::forward, forward++, worker});
  for (int lane = 0; lane < shape.lanes; ++lane) {
    tasks.push_back({Work::backward, lane, worker});
    if (forward < shape.lanes) tasks.push_back({Work::forward, forward++, worker});
  }
  return tasks;
}

}  // namespace

ScheduleKind one_forward_one_backward() {
  return {.help = "one forward and one backward in turn", .tasks = alternate, .keeps = lanes_ahead};
}

}  // namespace artel::plan
