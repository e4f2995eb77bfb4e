// A pipeline plan: where the network is cut, by which schedule its workers run, and what is
// to be expected of it.
#pragma once

#include <string>
#include <vector>

#include "artel/plan/cuts.h"
#include "artel/plan/graph_costs.h"
#include "artel/plan/simulate.h"

namespace artel::plan {

struct PipelineRequest {
  PipelineShape shape;
  std::string schedule = "auto";    // the fastest that fits
  std::vector<double> speeds = {};  // of the workers, in proportion; empty: all equal
  double memory = 0;                // bytes of each worker; 0: any number
  double bandwidth = 0;             // bytes a second between workers; 0: messages take no time
  double latency = 0;               // seconds
  int slots = 0;                    // numbers that the optimizer keeps for each parameter
  // Workers wait for each other after each step; otherwise who has finished begins the next one.
  bool meets = false;
};

struct PlannedStage {
  int first = 0, last = 0;  // forward nodes
  int worker = 0;
  StageTimes times;  // of one lane, on its worker
  double memory = 0;
  GraphCosts::Crossing crossing;  // of one lane, over the cut after it
};

struct PipelinePlan {
  Schedule schedule;
  std::vector<PlannedStage> stages;
  Simulation simulation;

  double longest() const;      // seconds of one lane in the longest stage
  double bytes() const;        // of one lane, over all cuts, there and back
  double most_memory() const;  // of the stages of one worker
};

// The shortest longest stage that fits. Throws if there are more stages than forward nodes, or if
// nothing fits, with what would.
PipelinePlan plan_pipeline(const GraphCosts& costs, const PipelineRequest& request);

// The same with cuts that are given, whether they fit or not. The schedule is not "auto".
PipelinePlan plan_with_cuts(const GraphCosts& costs, const PipelineRequest& request,
                            const StageBegins& begins);

}  // namespace artel::plan
