// `artel plan MODEL --on MACHINES`: forecasts the time, memory, and price of a training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artel/cli/subject.h"
#include "artel/exec/program.h"
#include "artel/plan/forecast/lane_costs.h"
#include "artel/plan/machines/machines.h"

namespace artel::cli {

struct TrainingPlanRequest {
  std::string subject, input;
  std::vector<std::string> overrides;
  std::string on;  // path or name of a machine file; empty for this machine
  std::string goal = "fastest";
  bool as_given = false;           // the configuration's own combination instead of a search
  bool exact = false;              // measure the lanes of the network on this machine
  std::string svg;                 // output file of the picture
  double tokens = 0, samples = 0;  // length of the training; 0 to use the configuration
  int64_t workers = 0;             // 0 to search for the best number
};

void show_training_plan(const TrainingPlanRequest& request);

// The network or configuration to plan. It may be too large for this machine.
Subject planned_subject(const std::string& name, const std::string& input,
                        const std::vector<std::string>& overrides);

// The training of a subject. `tokens` and `samples` give its length; 0 to use the configuration.
plan::TrainingTask training_task(const Subject& subject, const std::string& name, double tokens,
                                 double samples, int64_t workers);

// The kernels that training with this configuration uses.
KernelChoices choices_of(const TrainConfig& train);

// The machines of `--on`. If `on` is empty, this machine: its saved measurements, or a quick
// estimate without any.
plan::Machines planned_machines(const std::string& on);

// "about 4.2 ms a step on this machine (3.9 to 4.6 ms)", for one worker. Empty if this machine was
// not measured with `artel plan --measure`.
std::string own_step_text(const Subject& subject, int64_t samples, int lanes);

// Prints a notice if the machine file has fewer than `workers` workers.
void tell_missing_machines(const plan::Machines& machines, int64_t workers);

// Measures this machine and writes a machine file, to the cache if `file` is empty.
void measure_machines(const std::string& file);

}  // namespace artel::cli
