// The output of a run: the progress line, metrics files, curves, and the summary.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "artel/observe/metrics.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/run/config/part.h"
#include "artel/run/folder/run_folder.h"
#include "artel/train/trainer.h"

namespace artel {

// The content of summary.json. `judge` and `classes` are as for RunReport. `diverged`: the loss is
// far above that of the first step.
std::string summary_text(const FitResult& result, int64_t parameters, std::string_view judge,
                         const std::vector<std::string>& classes, bool diverged = false);

class RunReport {
 public:
  // `resumed_step` is the step after which the run continues; 0 for a new run. `judge` is the part
  // for evaluation after each epoch. `quiet` suppresses output. `classes` are the class names,
  // `tokens` the number of tokens per sample of text. Nothing is written before `begin`. After
  // that, write errors are warnings, and metrics are retried later.
  RunReport(RunFolder folder, int64_t resumed_step, Part judge, bool quiet,
            std::vector<std::string> classes = {}, int64_t tokens = 0);
  void begin();

  void note(const std::string& text) {
    if (progress_) progress_->note(text);
  }
  // The callbacks of `fit`.
  void after_step(const TrainingState& state);
  void after_epoch(const TrainingState& state, bool prints = true);

  void while_testing(int64_t done, int64_t samples) {
    if (progress_) progress_->work("testing", done, samples);
  }

  // Appends an event to metrics.jsonl.
  void write_event(int64_t step, const std::string& kind, const std::string& text) {
    write([&] { metrics_->write_event(step, kind, text); });
  }

  // Requires `begin`.
  observe::MetricsWriter& metrics() { return *metrics_; }

  // Runs `work` and turns write errors into warnings.
  void write(const std::function<void()>& work);

  // Makes metrics survive the end of this process, or a crash of the machine.
  void flush();
  void sync();

  // Draws the curves, and writes and prints the summary. `choices` are the kernel choices.
  void finish(const FitResult& result, int64_t parameters, const std::string& choices);

 private:
  observe::Table table_of(const FitResult& result, int64_t parameters) const;

  RunFolder folder_;
  int64_t resumed_step_;
  std::string judge_;
  std::vector<std::string> classes_;
  int64_t tokens_;
  std::optional<observe::Progress> progress_;
  std::optional<observe::MetricsWriter> metrics_;
  bool refused_ = false;    // the last write failed
  int workers_ = 0;         // at the last step
  int64_t sent_bytes_ = 0;  // until the last step
};

}  // namespace artel
