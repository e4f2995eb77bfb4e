// A trained network, from the folder of a run or from weights and a configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artel/run/setup.h"

namespace artel {

struct SavedRun {
  // With the weights that training begins with.
  SavedRun(RunConfig config, data::SampleLayout layout);
  // `where` names the source of the weights in messages.
  void load(const NamedTensors& weights, const std::string& where);

  TensorType sample() const { return sample_type(layout, augment); }
  // On the test data of the configuration.
  Evaluation evaluate() const;

  RunConfig config;
  data::SampleLayout layout;  // of the data, before augmentation
  data::Augmentation augment;
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Trainer> trainer;
};

// `source` is the folder of a run or one of its checkpoints; or, with a configuration file, weights
// of any known format.
SavedRun open_run(const std::string& source, const std::string& config_file,
                  const std::vector<std::string>& overrides);

}  // namespace artel
