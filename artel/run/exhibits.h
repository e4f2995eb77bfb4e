// What a run keeps of its network after an epoch for people to look at, beside numbers: mistakes as
// pictures, texts that it writes, and for TensorBoard histograms of its weights. Of worker 0 alone,
// except for the constructor.
#pragma once

#include "artel/observe/metrics.h"
#include "artel/run/run_folder.h"
#include "artel/run/setup.h"
#include "artel/run/text_samples.h"
#include "artel/train/trainer.h"

namespace artel {

// Whether there are exhibits of an epoch. Of long runs not all have them, so that their files stay
// small: the first 50, then 25 more each time that the number of epochs has doubled.
bool is_exhibited(int64_t epoch);

class Exhibits {
 public:
  // `judged` are the samples that the network is tested on. All else is borrowed.
  Exhibits(const RunConfig& config, const RunData& data, data::DatasetPtr judged,
           const Model& model, Trainer& trainer, int threads);

  // How many mistakes of a test are wanted; the same on all workers.
  int64_t mistakes() const;

  // Before the first step after `step`.
  void begin(const RunFolder& folder, int64_t step, observe::MetricsWriter& metrics) const;
  void after_epoch(const RunFolder& folder, const TrainingState& state,
                   observe::MetricsWriter& metrics);
  // The mistakes of the last test, if they are not those that were saved last.
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
  bool everything_;  // for TensorBoard, not only scalars
  TextSamples texts_;
  bool warned_ = false;
  std::optional<std::pair<int64_t, std::vector<Mistake>>> saved_;  // after which step
};

}  // namespace artel
