// Training on the kept values of frozen layers (train.cache): which part of a network is above
// them, and the data that it is trained on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/run/setup.h"

namespace artel {

struct KeptFeatures {
  Model above;              // of the network, from the features on
  TensorType value;         // of one sample
  data::DatasetPtr train;   // features, with the targets of the samples
  data::DatasetPtr judged;  // likewise; null if there are none
  NamedTensors frozen;      // the weights below, which belong into checkpoints
  int64_t parameters = 0;   // elements of them that could be trained
};

// The names of the parameters and states of a network for such samples.
std::vector<std::string> parameter_names(const Model& model, const TensorType& sample);

// Whether the configuration asks for it and it can be done; otherwise the log says why not. Throws
// for settings that contradict it.
std::optional<KeptFeatures> keep_features(const RunConfig& config, const RunData& data,
                                          const data::DatasetPtr& judged, const Model& model,
                                          int lanes, int threads);

}  // namespace artel
