// A trained network in use: `artel.Run`.
#pragma once

#include <memory>

#include "artel/data/tables/csv.h"
#include "artel/run/folder/saved_run.h"
#include "artel/run/run.h"

namespace artel::python {

// Reads its weights when they are first needed. Calls come from one thread at a time.
class TrainedRun {
 public:
  // The folder of a run, a checkpoint, or weights with a configuration.
  explicit TrainedRun(RunSource source);
  // The results of training that are still in memory in this process.
  TrainedRun(std::shared_ptr<Run> run, const RunResult& result);

  // Empty at a worker that does not have it.
  const std::filesystem::path& folder() const { return folder_; }
  const SavedRun& saved();

  // The network's output for each sample, prepared as in training; values of a table have the unit
  // of its target.
  Tensor predict(const data::Dataset& samples, const std::string& output);
  // Rows of a table as samples, with their targets if they are wanted.
  data::DatasetPtr encoded(const data::Table& table, bool with_targets);
  Evaluation evaluate(const data::DatasetPtr& samples);
  // The output of a layer for each sample; "" for the input of the last layer.
  Tensor features(const data::Dataset& samples, const std::string& layer,
                  const std::string& pooling);

 private:
  RunSource source_;
  std::filesystem::path folder_;
  std::shared_ptr<Run> run_;
  std::shared_ptr<const SavedRun> saved_;
};

}  // namespace artel::python
