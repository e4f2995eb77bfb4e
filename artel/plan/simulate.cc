#include "artel/plan/simulate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::plan {
namespace {

class Simulator {
 public:
  Simulator(const Schedule& schedule, const PipelineCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        free_(schedule.tasks.size()),
        forward_link_(costs.stages.size()),
        backward_link_(costs.stages.size()) {}

  // Simulates the next step. Returns the time at which the last worker finishes it.
  double step(std::vector<std::vector<TaskSpan>>& spans) {
    const size_t workers = schedule_.tasks.size();
    ended_.clear();
    spans.assign(workers, {});
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t worker = 0; worker < workers; ++worker)
        while (spans[worker].size() < schedule_.tasks[worker].size()) {
          const Task& task = schedule_.tasks[worker][spans[worker].size()];
          const std::optional<double> ready = ready_at(task);
          if (!ready) break;
          const double begin = std::max(free_[worker], *ready);
          const double end = begin + costs_.stages[task.stage].of(task.work);
          spans[worker].push_back({task, begin, end});
          free_[worker] = end;
          ended_[key(task)] = {end, arrival(task, end)};
          moved = true;
        }
    }
    for (size_t worker = 0; worker < workers; ++worker)
      if (const size_t done = spans[worker].size(); done < schedule_.tasks[worker].size()) {
        const Task& task = schedule_.tasks[worker][done];
        fail(ErrorKind::internal, "[schedule {}] worker {} waits forever for lane {} of stage {}",
             schedule_.name, worker, task.lane, task.stage);
      }
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  struct End {
    double here, there;  // available to the stage itself, and to its neighbour
  };
  using Key = std::tuple<bool, bool, int, int>;

  // Input gradients are sent like the results of backward passes.
  static Key key(const Task& task) {
    return {task.work == Work::forward, task.work == Work::weight_gradient, task.lane, task.stage};
  }

  std::optional<double> ready_at(const Task& task) const {
    double ready = 0;
    for (const Task& needed : needed_by(schedule_, task)) {
      const auto found = ended_.find(key(needed));
      if (found == ended_.end()) return {};
      ready =
          std::max(ready, needed.stage == task.stage ? found->second.here : found->second.there);
    }
    return ready;
  }

  double arrival(const Task& task, double end) {
    if (task.work == Work::weight_gradient) return end;
    const bool forward = task.work == Work::forward;
    const int cut = forward ? task.stage : task.stage - 1;
    if (cut < 0 || cut >= static_cast<int>(costs_.transfers.size())) return end;
    double& link = (forward ? forward_link_ : backward_link_)[task.stage];
    return link = std::max(link, end) + costs_.transfers[cut];
  }

  const Schedule& schedule_;
  const PipelineCosts& costs_;
  std::vector<double> free_;                          // time at which each worker becomes idle
  std::vector<double> forward_link_, backward_link_;  // time at which each link is free
  std::map<Key, End> ended_;
};

}  // namespace

double StageTimes::of(Work work) const {
  switch (work) {
    case Work::forward:
      return forward;
    case Work::backward:
      return input_gradient + weight_gradient;
    case Work::input_gradient:
      return input_gradient;
    case Work::weight_gradient:
      return weight_gradient;
  }
  return 0;
}

PipelineCosts PipelineCosts::equal(const PipelineShape& shape, const StageTimes& times) {
  const double share = 1.0 / shape.stages_of_a_worker();
  return {std::vector<StageTimes>(
      shape.stages,
      {times.forward * share, times.input_gradient * share, times.weight_gradient * share})};
}

Simulation simulate(const Schedule& schedule, const PipelineCosts& costs) {
  require(static_cast<int>(costs.stages.size()) == schedule.shape.stages, ErrorKind::internal,
          "[schedule {}] got times of {} stages, expected {}", schedule.name, costs.stages.size(),
          schedule.shape.stages);
  Simulation result;
  Simulator simulator(schedule, costs);
  simulator.step(result.spans);
  // Steady state: the time of a step that does not follow the first one.
  std::vector<std::vector<TaskSpan>> spans;
  const double before = simulator.step(spans);
  const double after = simulator.step(spans);
  for (const std::vector<TaskSpan>& worker : result.spans) {
    result.busy.push_back(0);
    for (const TaskSpan& span : worker) result.busy.back() += span.end - span.begin;
  }
  result.take(after - before);
  return result;
}

void Simulation::take(double the_seconds) {
  seconds = the_seconds;
  const double all = seconds * static_cast<double>(busy.size());
  if (seconds > 0) bubble = 1 - std::accumulate(busy.begin(), busy.end(), 0.0) / all;
}

void Simulation::wait_for_all() {
  double last = 0;
  for (const std::vector<TaskSpan>& worker : spans)
    for (const TaskSpan& span : worker) last = std::max(last, span.end);
  take(last);
}

bool is_faster(const Simulation& one, const Simulation& other) {
  constexpr double kFaster = 1e-3;
  return one.seconds < (1 - kFaster) * other.seconds;
}

Schedule fastest_schedule(const PipelineShape& shape, const PipelineCosts& costs,
                          const std::function<bool(const Schedule&)>& fits) {
  std::optional<Schedule> fastest;
  Simulation best;
  std::vector<std::string> tried;
  for (const std::string& name : schedule_names()) {
    if (schedule_kind(name).several_stages != (shape.stages > shape.workers)) continue;
    tried.push_back(name);
    Schedule schedule = make_schedule(name, shape);
    if (!fits(schedule)) continue;
    Simulation simulation = simulate(schedule, costs);
    if (fastest && !is_faster(simulation, best)) continue;
    fastest = std::move(schedule);
    best = std::move(simulation);
  }
  require(fastest.has_value(), ErrorKind::memory,
          "[schedule auto] none of {} fits into the memory of {} workers with {} lanes; try more "
          "stages, or more lanes of fewer samples",
          join(tried, ", "), shape.workers, shape.lanes);
  return *fastest;
}

}  // namespace artel::plan
