#include "artel/train/strategies/pipeline.h"

#include <sstream>

#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/data/fetch.h"
#include "artel/plan/forecast/own_machine.h"
#include "artel/plan/measure.h"
#include "artel/plan/pipeline.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/parts/mesh_axes.h"
#include "artel/train/parts/pipeline_runner.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategy.h"

namespace artel {
namespace {

std::vector<std::string> schedule_choices() {
  std::vector<std::string> names = plan::schedule_names();
  names.insert(names.begin(), "auto");
  return names;
}

std::string to_text(const PipelineCuts& cuts) {
  std::string text = cuts.schedule;
  for (const int origin : cuts.origins) text += fmt::format(" {}", origin);
  return text;
}

PipelineCuts cuts_in(const std::string& text) {
  PipelineCuts cuts;
  std::istringstream words(text);
  words >> cuts.schedule;
  for (int origin = 0; words >> origin;) cuts.origins.push_back(origin);
  return cuts;
}

// Uses the best cuts by time, or equal ones for comparison.
plan::PipelinePlan planned(const plan::GraphCosts& costs, const std::string& cuts,
                           plan::PipelineRequest request) {
  plan::PipelinePlan best = plan::plan_pipeline(costs, request);
  if (cuts != "layers" && cuts != "parameters") return best;
  request.schedule = best.schedule.name;
  return plan::plan_with_cuts(
      costs, request,
      plan::equal_cuts(cuts == "layers" ? costs.layer_counts() : costs.parameter_counts(),
                       request.shape.stages));
}

}  // namespace

PipelineCuts choose_cuts(const FitView& fit, const MeshSize& size, int copies) {
  const int workers = size.pipeline;
  const std::string& wanted = fit.options_of<PipelineOptions>().schedule;
  const int each = wanted != "auto" && plan::schedule_kind(wanted).several_stages ? 2 : 1;
  const int64_t samples = (fit.batch_size + fit.lanes - 1) / fit.lanes;
  const Graph graph = fit.stepper->graph(samples);
  const auto& options = fit.options_of<PipelineOptions>();
  const plan::GraphCosts costs(
      graph, options.cuts == "measured" ? plan::measured_node_seconds(graph, fit.stepper->choices(),
                                                                      data::data_folder() / "costs")
                                        : plan::own_node_seconds(graph, data::data_folder()));
  const plan::PipelinePlan plan =
      planned(costs, options.cuts,
              {.shape = {workers, workers * each, std::max(1, fit.lanes / copies)},
               .schedule = wanted,
               .speeds = stage_speeds(
                   {fit.group()->host_numbers(), fit.options_of<MeshOptions>().speeds}, size),
               .slots = static_cast<int>(fit.stepper->update().memory().size())});
  PipelineCuts cuts = {plan.schedule.name, {}};
  for (const plan::PlannedStage& stage : plan.stages) {
    cuts.origins.push_back(graph.node(stage.first).origin);
    log(LogLevel::info, "stage {}: {} to {}", cuts.origins.size() - 1, costs.layer(stage.first),
        costs.layer(stage.last - 1));
  }
  log(LogLevel::info, "{} of {} workers, schedule {}",
      counted(fit.cluster.size() / workers, "pipeline"), workers, cuts.schedule);
  return cuts;
}

PipelineCuts agreed_cuts(comm::Group& group, const std::function<PipelineCuts()>& choose) {
  return cuts_in(broadcast_text(group, group.rank() == 0 ? to_text(choose()) : ""));
}

void PipelineOptions::visit(KeyVisitor& field) {
  field({.name = "cluster.pipeline",
         .help = "Workers per pipeline, each with a part of the network; must divide the number of "
                 "workers. 1: each worker has the whole network.",
         .least = 1},
        pipeline);
  const std::vector<std::string> names = schedule_choices();
  field({.name = "cluster.schedule",
         .help = "With `pipeline`: the schedule of the stages (`artel plan` draws it); `auto`: the "
                 "fastest by estimate.",
         .choices = {names.begin(), names.end()}},
        schedule);
  field({.name = "cluster.cuts",
         .help = "With `pipeline`: times by which the network is cut: `estimated` by a model of a "
                 "processor, or `measured` by worker 0 before the first step. For comparison: "
                 "stages of equally many `layers` or `parameters`.",
         .choices = {"estimated", "measured", "layers", "parameters"}},
        cuts);
}

}  // namespace artel
