// A trained network, from the folder of a run or from weights and a configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artel/run/setup.h"

namespace artel {

struct SavedRun {
  // With the initial weights of training. `more_metrics` are measured besides those of the
  // configuration, where they fit.
  SavedRun(RunConfig config, data::SampleLayout layout,
           const std::vector<std::string>& more_metrics = {},
           std::shared_ptr<Cluster> workers = nullptr);
  // `where` names the source of the weights in messages.
  void load(const NamedTensors& weights, const std::string& where);

  TensorType sample() const { return sample_type(layout, augment); }
  // On a part of the data of the configuration. The log says if it is not what `trained_on` tells.
  Evaluation evaluate(Part part, const TestProgress& progress = {}, int64_t mistakes = 0) const;

  RunConfig config;
  data::SampleLayout layout;  // of the data, before augmentation
  data::Augmentation augment;
  std::string trained_on;            // fingerprint of the data; empty: unknown
  std::shared_ptr<Cluster> cluster;  // one worker, unless others were given
  std::unique_ptr<Trainer> trainer;
};

struct RunSource {
  // The folder of a run, for its newest checkpoint; one of its checkpoints; the file
  // checkpoints/best; or, with a configuration file, weights of any known format.
  std::string path;
  std::string config_file = {};
  std::vector<std::string> overrides = {};
  bool best = false;  // the best checkpoint of the run instead of the newest
  std::vector<std::string> more_metrics = {};  // where there are classes, at most 100 of them
  // With the weights that were trained, also where the checkpoint has averaged ones
  // (train.optimizer.average).
  bool trained = false;
};

// "step-000002340, the newest checkpoint of runs/mnist; --best uses step-000001872": which
// checkpoint of a run is used, and whether another one is better. Empty for anything but the folder
// of a run.
std::string describe_checkpoint(const RunSource& source);

// By these workers, if there are any: then each has only some of the layers if the configuration
// asks for pipelines, and what the run computes are collective calls.
SavedRun open_run(const RunSource& source, std::shared_ptr<Cluster> workers = nullptr);

}  // namespace artel
