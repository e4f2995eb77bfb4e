// Narayanan et al., "PipeDream" (2019): a worker begins with as many forward passes as it takes
// until the first gradient comes back, then does one backward and one forward in turn. Idles as
// long as GPipe but keeps the activations of at most N lanes.
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
