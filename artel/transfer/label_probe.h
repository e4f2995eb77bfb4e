// What a base is worth when few samples have labels: a linear model on its features, beside the
// same layers trained from random weights on the same labels.
#pragma once

#include <optional>
#include <vector>

#include "artel/transfer/features.h"

namespace artel::transfer {

struct LabelProbe {
  double share = 1;                    // of the training samples that have labels
  int64_t labels = 0;                  // how many these are
  double accuracy = 0;                 // of a linear model on the features, on the test part
  std::optional<double> scratch = {};  // of the layers with a dense one on top, from random weights
};

struct LabelProbeOptions {
  std::vector<double> shares = {0.01, 0.1, 1};
  FeatureRequest request = {};
  int64_t scratch_epochs = 0;  // 0: nothing is trained from scratch
  int threads = 1;
  uint64_t seed = 0;
};

// Labels are those of a random part of the training samples, the same for both. Throws for data
// without classes or test part.
std::vector<LabelProbe> probe_labels(const BaseNetwork& base, const DataConfig& data,
                                     const LabelProbeOptions& options,
                                     const FeatureProgress& progress = {});

}  // namespace artel::transfer
