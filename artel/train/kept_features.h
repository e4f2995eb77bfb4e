// What frozen layers compute for the samples of a set, once for all epochs.
//
// The values lie in a file that all workers of a machine map. They are computed in parts of `rows`
// samples: with the shapes of a lane they have the bits that a lane computes. Whoever needs a part
// that nobody has begun computes it, so workers share the work without a message; a part that
// somebody began and nobody finished is computed again.
#pragma once

#include <string>

#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

struct FeatureWork {
  const Model& below;           // the layers
  TensorType sample;            // of one sample, prepared
  const NamedTensors& weights;  // of the layers, and perhaps others
  std::string key;              // what decides the samples and their order
  int64_t rows = 1;             // of a part
  int lanes = 1;                // of a batch in training
  int threads = 1;
};

// The values as a set with the targets of the samples, mapped from a file below data_folder(). The
// file is known by all that decides its content, is used again by other runs, and goes when nobody
// has used it for three days. Throws if there is no room for it.
data::DatasetPtr kept_features(const FeatureWork& work, const data::Dataset& set,
                               const data::Augmentation& prepare);

}  // namespace artel
