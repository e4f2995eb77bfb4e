// Exhibits of a run after an epoch: mistakes as pictures, generated texts, and histograms of the
// weights for TensorBoard. Only worker 0 calls the functions, except the constructor.
#pragma once

#include "artel/observe/metrics.h"
#include "artel/run/config/setup.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/samples/text_samples.h"
#include "artel/train/trainer.h"

namespace artel {

// True if the epoch has exhibits. To keep files small, these are the first 50 epochs, then 25 more
// each time that the number of epochs doubles.
bool is_exhibited(int64_t epoch);

class Exhibits {
 public:
  // `judged` are the samples for evaluation. Borrows the other arguments.
  Exhibits(const RunConfig& config, const RunData& data, data::DatasetPtr judged,
           const Model& model, Trainer& trainer, int threads);

  // Number of mistakes to collect in a test; the same on all workers.
  int64_t mistakes() const;

  // Called before the first step after `step`.
  void begin(const RunFolder& folder, int64_t step, observe::MetricsWriter& metrics) const;
  void after_epoch(const RunFolder& folder, const TrainingState& state,
                   observe::MetricsWriter& metrics);
  // Saves the mistakes of the last test unless they were saved already.
  void finish(const RunFolder& folder, const FitResult& result, observe::MetricsWriter& metrics);

 private:
  void save_mistakes(const RunFolder& folder, const TrainingState& state,
                     observe::EventFileWriter& events);
  void write_text(const RunFolder& folder, const TrainingState& state,
                  observe::EventFileWriter& events);

  const RunConfig& config_;
  const RunData& data_;
  data::DatasetPtr judged_;
  const Model& model_;
  Trainer& trainer_;
  int threads_;
  bool everything_;  // observe.tensorboard is "all"
  TextSamples texts_;
  bool warned_ = false;
  std::optional<std::pair<int64_t, std::vector<Mistake>>> saved_;  // with their step
};

}  // namespace artel
