// What a person and what scripts see of a run: the live line, metrics files, curves, the summary.
#pragma once

#include <optional>
#include <string>

#include "artel/observe/metrics.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/run/run_folder.h"
#include "artel/train/trainer.h"

namespace artel {

class RunReport {
 public:
  // `resumed_step` is the step after which the run goes on; 0 for a new one. What is quiet prints
  // nothing.
  RunReport(RunFolder folder, int64_t resumed_step, bool has_classes, bool quiet);

  void note(const std::string& text) {
    if (progress_) progress_->note(text);
  }
  // The callbacks of `fit`.
  void after_step(const TrainingState& state);
  void after_epoch(const TrainingState& state);

  // Draws the curves, and writes and prints the summary.
  void finish(const FitResult& result, int64_t parameters);

 private:
  observe::Table table_of(const FitResult& result, int64_t parameters) const;

  RunFolder folder_;
  bool has_classes_;
  std::optional<observe::Progress> progress_;
  observe::MetricsWriter metrics_;
};

// curves.svg of a run from its metrics.
void draw_curves(const RunFolder& folder);

}  // namespace artel
