// Zero-bubble schedules compute the input gradient, which the preceding stage needs, separately
// from the weight gradient, which is deferred until the worker would idle.
//
// As in 1f1b, a worker starts with some forward passes and then alternates; each turn includes a
// weight gradient of an earlier lane. H1 holds as many activations on every worker as 1f1b on its
// first worker, and idles a third as long. H2 starts with about twice as many forward passes and
// holds twice as many activations. With equal times, it does not idle between steps.
#include <algorithm>

#include "artel/plan/schedules/kinds.h"

namespace artel::plan {
namespace {

// Makes `ahead` forward passes before the first gradient and holds the activations of at most
// `most` lanes.
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
