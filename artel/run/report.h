// What people and scripts see of a run: the live line, metrics files, curves, the summary.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/observe/metrics.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/run/part.h"
#include "artel/run/run_folder.h"
#include "artel/train/trainer.h"

namespace artel {

class RunReport {
 public:
  // `resumed_step` is the step after which the run goes on; 0 for a new one. `judge` is the part
  // that the network is evaluated on after each epoch. What is quiet prints nothing. Nothing is
  // written before `begin`. After that, what the disk refuses is a warning, and metrics are written
  // later. `classes` are the names of the data's classes, `tokens` how many a
  // sample of text has.
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

  // A line of metrics.jsonl.
  void write_event(int64_t step, const std::string& kind, const std::string& text) {
    write([&] { metrics_->write_event(step, kind, text); });
  }

  // After `begin`.
  observe::MetricsWriter& metrics() { return *metrics_; }

  // Does the work; what the disk refuses is a warning.
  void write(const std::function<void()>& work);

  // Makes metrics survive the end of this process, or a crash of the machine.
  void flush();
  void sync();

  // Draws the curves, and writes and prints the summary; `choices` are those of kernels.
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
  bool refused_ = false;    // by the disk, at the last attempt
  int workers_ = 0;         // of the last step
  int64_t sent_bytes_ = 0;  // up to the last step
};

}  // namespace artel
