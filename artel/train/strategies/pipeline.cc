#include "artel/train/strategies/pipeline.h"

#include <sstream>

#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/data/fetch.h"
#include "artel/plan/measure.h"
#include "artel/plan/pipeline.h"
#include "artel/train/agreement.h"
#include "artel/train/pipeline_runner.h"
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

// With the cuts that are best by their times, or with equal ones to compare these with.
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

PipelineCuts choose_cuts(const Fit& fit, int workers, int copies) {
  const std::string& wanted = fit.options_of<PipelineOptions>().schedule;
  const int each = wanted != "auto" && plan::schedule_kind(wanted).several_stages ? 2 : 1;
  const int64_t samples = (fit.batch_size + fit.lanes - 1) / fit.lanes;
  const Graph graph = fit.stepper->graph(samples);
  const auto& options = fit.options_of<PipelineOptions>();
  const plan::GraphCosts costs(
      graph, options.cuts == "measured" ? plan::measured_node_seconds(graph, fit.stepper->choices(),
                                                                      data::data_folder() / "costs")
                                        : plan::estimated_node_seconds(graph));
  const plan::PipelinePlan plan =
      planned(costs, options.cuts,
              {.shape = {workers, workers * each, fit.lanes / copies},
               .schedule = wanted,
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
         .help = "Workers of a pipeline, each with a part of the network; must divide the workers. "
                 "1: each worker has all of it.",
         .least = 1},
        pipeline);
  static const std::vector<std::string> names = schedule_choices();
  field(
      {.name = "cluster.schedule",
       .help = "With `pipeline`: in which order the parts work (`artel plan` draws them); `auto`: "
               "the fastest by estimate.",
       .choices = {names.begin(), names.end()}},
      schedule);
  field({.name = "cluster.cuts",
         .help = "With `pipeline`: by which times the network is cut, `estimated` by a model of a "
                 "processor, or `measured` by worker 0 before the first step; or, to compare with, "
                 "into stages of equally many `layers` or `parameters`.",
         .choices = {"estimated", "measured", "layers", "parameters"}},
        cuts);
}

}  // namespace artel
