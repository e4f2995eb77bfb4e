// The gradient of the input, which the stage before waits for, is computed apart from that of the
// weights, which nobody waits for. The latter is put off until the worker would idle.
//
// As in 1f1b a worker begins with some forward passes and then goes on in turns; each turn has a
// weight gradient, but of a lane further back. H1 keeps as many activations as the first worker of
// 1f1b on every worker and idles a third as long. H2 begins with about twice as many forward passes
// and keeps twice as much; with all times equal it does not idle at all from one step to the next.
#include <algorithm>

#include "artel/plan/schedules/kinds.h"

namespace artel::plan {
namespace {

// `ahead` forward passes before the first gradient; activations of at most `most` lanes are kept.
std::vector<Task> put_off(const PipelineShape& shape, int worker, int ahead, int most) {
  std::vector<Task> tasks;
  int forward = 0, weights = 0;
  while (forward < std::min(ahead, shape.lanes))
    tasks.push_back({Work::forward, forward++, worker});
  for (int lane = 0; lane < shape.lanes; ++lane) {
    tasks.push_back({Work::input_gradient, lane, worker});
    if (lane + 1 - weights > most - ahead)
      tasks.push_back({Work::weight_gradient, weights++, worker});
    if (forward < shape.lanes) tasks.push_back({Work::forward, forward++, worker});
  }
  while (weights < shape.lanes) tasks.push_back({Work::weight_gradient, weights++, worker});
  return tasks;
}

}  // namespace

ScheduleKind zero_bubble() {
  return {.help = "weight gradients fill the gaps (ZB-H1)",
          .tasks =
              [](const PipelineShape& shape, int worker) {
                return put_off(shape, worker, shape.behind(worker) + 1, shape.workers);
              },
          .keeps = [](const PipelineShape& shape,
                      int) { return std::min(shape.lanes, shape.workers); }};
}

ScheduleKind zero_bubble_h2() {
  return {.help = "the same with twice the activations (ZB-H2)",
          .tasks =
              [](const PipelineShape& shape, int worker) {
                return put_off(shape, worker, 2 * shape.behind(worker) + 1, 2 * shape.workers - 1);
              },
          .keeps = [](const PipelineShape& shape,
                      int) { return std::min(shape.lanes, 2 * shape.workers - 1); }};
}

}  // namespace artel::plan
