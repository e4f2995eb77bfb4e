#include "artel/plan/pipeline.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::plan {
namespace {

// The maximum number of lanes whose activations each stage holds at a time.
std::vector<int> lanes_kept(const Schedule& schedule) {
  std::vector<int> kept(schedule.shape.stages), most(schedule.shape.stages);
  for (const std::vector<Task>& tasks : schedule.tasks)
    for (const Task& task : tasks) {
      if (task.work == Work::forward)
        most[task.stage] = std::max(most[task.stage], ++kept[task.stage]);
      if (frees_activations(task.work)) --kept[task.stage];
    }
  return most;
}

// Memory of a stage with `kept` lanes in flight. Gradients are added along a tree, so it includes
// those of a lane and pending sums.
double memory_of(const GraphCosts& costs, const PipelineRequest& request, int kept, int first,
                 int last) {
  const auto sums = static_cast<int>(std::bit_width(static_cast<unsigned>(request.shape.lanes)));
  return costs.memory(first, last).total(kept, request.slots, sums);
}

double speed_of(const PipelineRequest& request, int stage) {
  return request.speeds.empty() ? 1 : request.speeds[request.shape.worker_of(stage)];
}

double transfer_seconds(const PipelineRequest& request, const GraphCosts::Crossing& crossing) {
  if (request.bandwidth <= 0) return 0;
  return request.latency + std::max(crossing.values, crossing.gradients) / request.bandwidth;
}

CutProblem cut_problem(const GraphCosts& costs, const PipelineRequest& request,
                       const Schedule& schedule) {
  const double room = request.memory / request.shape.stages_of_a_worker();
  return {
      .nodes = costs.nodes(),
      .stages = request.shape.stages,
      .seconds =
          [&costs, &request, room, kept = lanes_kept(schedule)](int stage, int first, int last) {
            if (room > 0 && memory_of(costs, request, kept[stage], first, last) > room)
              return kNever;
            // Messages overlap computation, but only one is sent at a time.
            double seconds = costs.times(first, last).total() / speed_of(request, stage);
            if (first > 0)
              seconds = std::max(seconds, transfer_seconds(request, costs.crossing(first)));
            return seconds;
          },
      .bytes =
          [&costs](int cut) { return costs.crossing(cut).values + costs.crossing(cut).gradients; }};
}

// The smallest memory limit per worker for which some cuts fit.
double least_memory(const GraphCosts& costs, const PipelineRequest& request,
                    const Schedule& schedule) {
  CutProblem problem = cut_problem(costs, request, schedule);
  problem.slack = 0;
  problem.seconds = [&, kept = lanes_kept(schedule)](int stage, int first, int last) {
    return memory_of(costs, request, kept[stage], first, last);
  };
  return longest_stage(problem, *best_cuts(problem)) * request.shape.stages_of_a_worker();
}

std::vector<std::string> suitable_schedules(const PipelineRequest& request) {
  if (request.schedule != "auto") return {request.schedule};
  std::vector<std::string> names;
  for (const std::string& name : schedule_names())
    if (schedule_kind(name).several_stages == (request.shape.stages > request.shape.workers))
      names.push_back(name);
  return names;
}

void check_request(const GraphCosts& costs, const PipelineRequest& request) {
  const int stages = request.shape.stages;
  require(stages <= costs.nodes(), ErrorKind::invalid_argument,
          "[pipeline] got {} stages for a network of {} ops, expected at most one for each; try {} "
          "or fewer",
          stages, costs.nodes(), costs.nodes());
  require(
      request.speeds.empty() || static_cast<int>(request.speeds.size()) == request.shape.workers,
      ErrorKind::invalid_argument,
      "[pipeline] speeds: got {} numbers, expected one for each of the {} workers",
      request.speeds.size(), request.shape.workers);
}

}  // namespace

double PipelinePlan::longest() const {
  double longest = 0;
  for (const PlannedStage& stage : stages) longest = std::max(longest, stage.times.total());
  return longest;
}

double PipelinePlan::bytes() const {
  double bytes = 0;
  for (const PlannedStage& stage : stages)
    bytes += stage.crossing.values + stage.crossing.gradients;
  return bytes;
}

double PipelinePlan::most_memory() const {
  std::vector<double> of_worker(schedule.shape.workers);
  for (const PlannedStage& stage : stages) of_worker[stage.worker] += stage.memory;
  return *std::max_element(of_worker.begin(), of_worker.end());
}

PipelinePlan plan_with_cuts(const GraphCosts& costs, const PipelineRequest& request,
                            const StageBegins& begins) {
  PipelinePlan plan = {make_schedule(request.schedule, request.shape), {}, {}};
  const std::vector<int> kept = lanes_kept(plan.schedule);
  PipelineCosts times;
  for (int i = 0; i < request.shape.stages; ++i) {
    PlannedStage stage = {.first = begins[i],
                          .last = i + 1 < request.shape.stages ? begins[i + 1] : costs.nodes(),
                          .worker = request.shape.worker_of(i)};
    const StageTimes own = costs.times(stage.first, stage.last);
    const double speed = speed_of(request, i);
    stage.times = {own.forward / speed, own.input_gradient / speed, own.weight_gradient / speed};
    stage.memory = memory_of(costs, request, kept[i], stage.first, stage.last);
    if (stage.last < costs.nodes()) {
      stage.crossing = costs.crossing(stage.last);
      times.transfers.push_back(transfer_seconds(request, stage.crossing));
    }
    times.stages.push_back(stage.times);
    plan.stages.push_back(stage);
  }
  plan.simulation = simulate(plan.schedule, times);
  if (request.meets) plan.simulation.wait_for_all();
  return plan;
}

PipelinePlan plan_pipeline(const GraphCosts& costs, const PipelineRequest& request) {
  check_request(costs, request);
  std::optional<PipelinePlan> fastest;
  double least = kNever;
  for (const std::string& name : suitable_schedules(request)) {
    PipelineRequest with = request;
    with.schedule = name;
    const Schedule schedule = make_schedule(name, request.shape);
    const auto begins = best_cuts(cut_problem(costs, with, schedule));
    if (!begins) {
      least = std::min(least, least_memory(costs, with, schedule));
      continue;
    }
    PipelinePlan plan = plan_with_cuts(costs, with, *begins);
    if (!fastest || is_faster(plan.simulation, fastest->simulation)) fastest = std::move(plan);
  }
  require(
      fastest.has_value(), ErrorKind::memory,
      "[pipeline] memory: got {} for each of {} workers, expected at least {}; try more workers, "
      "or more lanes of fewer samples",
      format_bytes(request.memory), request.shape.workers, format_bytes(least));
  return std::move(*fastest);
}

}  // namespace artel::plan
