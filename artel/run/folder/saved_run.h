// A trained network, from a run folder or from weights and a configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artel/run/config/setup.h"

namespace artel {

struct SavedRun {
  // Creates the network with its initial weights. `more_metrics` are measured in addition to those
  // of the configuration, if applicable.
  SavedRun(RunConfig config, data::SampleLayout layout,
           const std::vector<std::string>& more_metrics = {},
           std::shared_ptr<Cluster> workers = nullptr);
  // `where` names the source of the weights in messages. Evaluation and prediction compute with
  // quantised matrices directly.
  void load(const NamedTensors& weights, const std::string& where);

  TensorType sample() const { return sample_type(layout, augment); }
  // Evaluates on a part of the configuration's data. Logs a warning if the data does not match
  // `trained_on`.
  Evaluation evaluate(Part part, const TestProgress& progress = {}, int64_t mistakes = 0) const;

  RunConfig config;
  data::SampleLayout layout;  // of the data, before augmentation
  data::Augmentation augment;
  std::string trained_on;            // fingerprint of the training data; empty if unknown
  std::shared_ptr<Cluster> cluster;  // one worker unless given
  std::unique_ptr<Trainer> trainer;
};

struct RunSource {
  // A run folder (its newest checkpoint), one of its checkpoints, the file checkpoints/best, or,
  // with a configuration file, a weight file of any supported format.
  std::string path;
  std::string config_file = {};
  std::vector<std::string> overrides = {};
  bool best = false;                           // uses the best checkpoint instead of the newest
  std::vector<std::string> more_metrics = {};  // for data with at most 100 classes
  // Uses the trained weights even if the checkpoint has averaged ones (train.optimizer.average).
  bool trained = false;
};

// Describes the checkpoint in use, and a better one if it exists: "step-000002340, the newest
// checkpoint of runs/mnist; --best uses step-000001872". Empty unless the source is a run folder.
std::string describe_checkpoint(const RunSource& source);

// The path of the weights that `source` selects: the best checkpoint or, without `best`,
// `source.path`.
std::string weights_path(const RunSource& source);

// Opens a run, optionally on several workers. With a pipeline, each worker has only some of the
// layers, and computations are collective calls.
SavedRun open_run(const RunSource& source, std::shared_ptr<Cluster> workers = nullptr);

}  // namespace artel
