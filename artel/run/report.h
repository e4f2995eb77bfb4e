// What a person and what scripts see of a run: the live line, metrics files, curves, the summary.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "artel/observe/metrics.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/run/run_folder.h"
#include "artel/train/trainer.h"

namespace artel {

class RunReport {
 public:
  // `resumed_step` is the step after which the run goes on; 0 for a new one.
  RunReport(RunFolder folder, int64_t resumed_step, bool has_classes);

  void note(const std::string& text) { progress_.note(text); }
  // The callbacks of `fit`.
  void after_step(const TrainingState& state);
  void after_epoch(const TrainingState& state);

  // Draws the curves and prints the summary.
  void finish(const FitResult& result, int64_t parameters);

 private:
  RunFolder folder_;
  bool has_classes_;
  observe::Progress progress_;
  observe::MetricsWriter metrics_;
};

// What parameter servers have seen: the staleness of pushes, and lost workers.
void add_server_report(nlohmann::ordered_json& summary, const ps::Report& report);
void add_server_report(observe::Table& table, const ps::Report& report);

// curves.svg of a run from its metrics.
void draw_curves(const RunFolder& folder);

}  // namespace artel
