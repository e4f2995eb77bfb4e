// Stores the outputs of frozen layers for the samples of a set, once for all epochs.
//
// The values are in a file that all workers of a machine map. They are computed in parts of `rows`
// samples, with the shapes of a lane, so they have the same bits as in a lane. A worker that needs
// a part computes it if no other worker has started it, so workers share the work without messages.
// A part that was started but never finished is computed again.
#pragma once

#include <string>

#include "artel/data/dataset.h"
#include "artel/data/images/augment.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

struct FeatureWork {
  const Model& below;           // the layers
  TensorType sample;            // of one sample, prepared
  const NamedTensors& weights;  // of the layers; may contain others
  std::string key;              // identifies the samples and their order
  int64_t rows = 1;             // per part
  int lanes = 1;                // per training batch
  int threads = 1;
};

// The values as a set with the targets of the samples, mapped from a file below data_folder(). The
// file name covers everything that determines its content, so other runs reuse it. It is deleted
// after three days without use. Throws if there is no room for it.
data::DatasetPtr kept_features(const FeatureWork& work, const data::Dataset& set,
                               const data::Augmentation& prepare);

}  // namespace artel
