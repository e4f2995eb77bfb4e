// Training on cached values of frozen layers (train.cache): the upper part of the network, and its
// data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/run/config/setup.h"

namespace artel {

struct KeptFeatures {
  Model above;              // the network above the features
  TensorType value;         // features of one sample
  data::DatasetPtr train;   // features, with the targets of the samples
  data::DatasetPtr judged;  // features for evaluation; null if none
  NamedTensors frozen;      // weights below the features, for checkpoints
  int64_t parameters = 0;   // number of trainable elements among them
};

// The names of the parameters and states of a network for such samples.
std::vector<std::string> parameter_names(const Model& model, const TensorType& sample);

// The cached features, if the configuration requests them and they are possible; otherwise logs the
// reason and returns nothing. Throws for contradictory settings.
std::optional<KeptFeatures> keep_features(const RunConfig& config, const RunData& data,
                                          const data::DatasetPtr& judged, const Model& model,
                                          int lanes, int threads);

}  // namespace artel
