// A pipeline plan: cuts, schedule, and expected time and memory.
#pragma once

#include <string>
#include <vector>

#include "artel/plan/cuts.h"
#include "artel/plan/graph_costs.h"
#include "artel/plan/simulate.h"

namespace artel::plan {

struct PipelineRequest {
  PipelineShape shape;
  std::string schedule = "auto";    // selects the fastest that fits
  std::vector<double> speeds = {};  // relative speeds of the workers; empty if all are equal
  double memory = 0;                // limit in bytes per worker; 0 means unlimited
  double bandwidth = 0;             // bytes per second between workers; 0 means infinite
  double latency = 0;               // seconds
  int slots = 0;                    // optimizer values per parameter
  // Workers wait for each other after each step. Otherwise a worker that has finished starts the
  // next one.
  bool meets = false;
};

struct PlannedStage {
  int first = 0, last = 0;  // forward nodes
  int worker = 0;
  StageTimes times;  // for one lane, on its worker
  double memory = 0;
  GraphCosts::Crossing crossing;  // for one lane, over the cut after the stage
};

struct PipelinePlan {
  Schedule schedule;
  std::vector<PlannedStage> stages;
  Simulation simulation;

  double longest() const;      // seconds of one lane in the longest stage
  double bytes() const;        // of one lane over all cuts, forward and backward
  double most_memory() const;  // maximum over workers
};

// Minimises the longest stage among the cuts that fit. Throws if the graph has fewer forward nodes
// than stages, or if nothing fits; the message then gives the required memory.
PipelinePlan plan_pipeline(const GraphCosts& costs, const PipelineRequest& request);

// Evaluates given cuts, whether they fit or not. The schedule must not be "auto".
PipelinePlan plan_with_cuts(const GraphCosts& costs, const PipelineRequest& request,
                            const StageBegins& begins);

}  // namespace artel::plan
