#include "artel/plan/schedule.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/plan/simulate.h"

namespace artel::plan {
namespace {

// True if the task computes the gradient for the preceding stage.
bool gives_input_gradient(Work work) {
  return work == Work::backward || work == Work::input_gradient;
}

void check_shape(std::string_view name, const PipelineShape& shape, bool several_stages) {
  require(shape.workers > 0 && shape.lanes > 0 && shape.stages > 0, ErrorKind::invalid_argument,
          "[schedule {}] got {} workers, {} stages and {} lanes, expected at least one of each",
          name, shape.workers, shape.stages, shape.lanes);
  require(shape.stages % shape.workers == 0, ErrorKind::invalid_argument,
          "[schedule {}] stages: got {} for {} workers, expected a multiple; try {}", name,
          shape.stages, shape.workers, std::max(1, shape.stages / shape.workers) * shape.workers);
  require(several_stages || shape.stages == shape.workers, ErrorKind::invalid_argument,
          "[schedule {}] stages: got {} for {} workers, expected one for each; try interleaved",
          name, shape.stages, shape.workers);
  require(!several_stages || shape.stages > shape.workers || shape.workers == 1,
          ErrorKind::invalid_argument,
          "[schedule {}] stages: got one for each of {} workers, expected several; try {}", name,
          shape.workers, 2 * shape.workers);
}

}  // namespace

Schedule make_schedule(std::string_view name, const PipelineShape& shape) {
  const ScheduleKind& kind = schedule_kind(name);
  check_shape(name, shape, kind.several_stages);
  Schedule schedule = {std::string(name), shape, {}};
  for (int worker = 0; worker < shape.workers; ++worker)
    schedule.tasks.push_back(kind.tasks(shape, worker));
  return schedule;
}

std::vector<Task> needed_by(const Schedule& schedule, const Task& task) {
  if (task.work == Work::forward) {
    if (task.stage == 0) return {};
    return {{Work::forward, task.lane, task.stage - 1}};
  }
  if (task.work == Work::weight_gradient) return {{Work::input_gradient, task.lane, task.stage}};
  std::vector<Task> needed = {{Work::forward, task.lane, task.stage}};
  if (task.stage + 1 < schedule.shape.stages)
    needed.push_back({task.work, task.lane, task.stage + 1});
  return needed;
}

std::vector<int> most_kept(const Schedule& schedule) {
  std::vector<int> most;
  for (const std::vector<Task>& tasks : schedule.tasks) {
    int kept = 0;
    most.push_back(0);
    for (const Task& task : tasks) {
      if (task.work == Work::forward) most.back() = std::max(most.back(), ++kept);
      if (frees_activations(task.work)) --kept;
    }
  }
  return most;
}

void check_schedule(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  const auto lanes = static_cast<size_t>(shape.lanes);
  const size_t places = lanes * static_cast<size_t>(shape.stages);
  std::vector<int> forward(places), gradients(places), freed(places);
  for (int worker = 0; worker < shape.workers; ++worker)
    for (const Task& task : schedule.tasks[static_cast<size_t>(worker)]) {
      require(task.lane >= 0 && task.lane < shape.lanes && task.stage >= 0 &&
                  task.stage < shape.stages && shape.worker_of(task.stage) == worker,
              ErrorKind::internal, "[schedule {}] worker {} has lane {} of stage {}", schedule.name,
              worker, task.lane, task.stage);
      const size_t place = static_cast<size_t>(task.stage) * lanes + static_cast<size_t>(task.lane);
      forward[place] += task.work == Work::forward;
      gradients[place] += gives_input_gradient(task.work);
      freed[place] += frees_activations(task.work);
    }
  for (size_t i = 0; i < places; ++i)
    require(
        forward[i] == 1 && gradients[i] == 1 && freed[i] == 1, ErrorKind::internal,
        "[schedule {}] lane {} of stage {}: {} forward passes, {} gradients of the input and {} "
        "of the weights, expected one of each",
        schedule.name, i % static_cast<size_t>(shape.lanes), i / static_cast<size_t>(shape.lanes),
        forward[i], gradients[i], freed[i]);
  const std::vector<int> kept = most_kept(schedule);
  const ScheduleKind& kind = schedule_kind(schedule.name);
  for (int worker = 0; worker < shape.workers; ++worker)
    require(kept[static_cast<size_t>(worker)] <= kind.keeps(shape, worker), ErrorKind::internal,
            "[schedule {}] worker {} keeps {} activations, expected at most {}", schedule.name,
            worker, kept[static_cast<size_t>(worker)], kind.keeps(shape, worker));
  simulate(schedule, PipelineCosts::equal(shape));  // throws on deadlock
}

}  // namespace artel::plan
