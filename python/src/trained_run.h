// A trained network in use: `artel.Run`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/data/tables/csv.h"
#include "artel/run/folder/saved_run.h"
#include "artel/run/run.h"
#include "artel/run/samples/text_uses.h"
#include "data.h"

namespace artel::python {

// Reads its weights when they are first needed. Any thread may call it; calls take turns. Call
// without the GIL, because samples written in Python need it.
class TrainedRun {
 public:
  // The folder of a run, a checkpoint, or weights with a configuration. `given` are the samples
  // that it was trained on, if the program still has them.
  explicit TrainedRun(RunSource source, GivenData given = {});
  // The results of training that are still in memory in this process.
  TrainedRun(std::shared_ptr<Run> run, const RunResult& result, GivenData given);

  // Empty on a worker that does not have it.
  const std::filesystem::path& folder() const { return folder_; }
  // The content of summary.json. Throws if there is none.
  std::string summary() const;
  std::string config_text();
  data::SampleLayout layout();
  NamedTensors weights();
  // Writes configuration, layout, and weights like a run folder with one checkpoint.
  void save(const std::filesystem::path& folder);
  // The same network, which also measures these metrics.
  std::shared_ptr<TrainedRun> measuring(const std::vector<std::string>& metrics);

  // The network's output for each sample, prepared as in training; values of a table have the unit
  // of its target.
  Tensor predict(const data::Dataset& samples, const std::string& output);
  // Rows of a table as samples, with their targets if they are wanted.
  data::DatasetPtr encoded(const data::Table& table, bool with_targets);
  Evaluation evaluate(const data::DatasetPtr& samples);
  // On a part of the data that it was trained on.
  Evaluation evaluate(Part part);
  // The output of a layer for each sample; "" for the input of the last layer.
  Tensor features(const data::Dataset& samples, const std::string& layer,
                  const std::string& pooling);

  // The language model for write_text and text_vectors. Throws on a worker without the folder.
  TextSource text_source() const;

 private:
  const SavedRun& saved() ARTEL_REQUIRES(mutex_);

  const RunSource source_;
  const std::filesystem::path folder_;
  const std::string summary_;
  const int64_t step_ = 0;
  const GivenData given_;
  const std::shared_ptr<Run> run_;
  Mutex mutex_;
  std::shared_ptr<const SavedRun> saved_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel::python
