// The value of a base with few labels: compares a linear model on its features with the same layers
// trained from random weights on the same labels.
#pragma once

#include <optional>
#include <vector>

#include "artel/transfer/features.h"

namespace artel::transfer {

struct LabelProbe {
  double share = 1;                    // labelled share of the training samples
  int64_t labels = 0;                  // number of labelled samples
  double accuracy = 0;                 // test accuracy of a linear model on the features
  std::optional<double> scratch = {};  // test accuracy when trained from random weights
};

struct LabelProbeOptions {
  std::vector<double> shares = {0.01, 0.1, 1};
  FeatureRequest request = {};
  int64_t scratch_epochs = 0;  // 0 skips training from scratch
  int threads = 1;
  uint64_t seed = 0;
};

// Labels a random part of the training samples, the same for both methods. Throws for data without
// classes or a test part.
std::vector<LabelProbe> probe_labels(const BaseNetwork& base, const DataConfig& data,
                                     const LabelProbeOptions& options,
                                     const FeatureProgress& progress = {});

}  // namespace artel::transfer
