// The advisor: recommends how to use a base on given data, based on measurements.
//
// The choice depends on the amount of data and on its similarity to the base's training data.
// Linear models on the features of each block, fitted on growing parts of the data, measure both.
// Their learning curve predicts the benefit of more data, and the block with the lowest error shows
// how many blocks are useful. Forecasts for fine-tuning follow from these measurements by fixed
// rules (docs/transfer.md). `check_ways` measures the actual accuracies.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/transfer/base_network.h"
#include "artel/transfer/blocks.h"
#include "artel/transfer/features.h"
#include "artel/transfer/learning_curve.h"

namespace artel::transfer {

enum class Way {
  last_features,   // a small model on the input of the head
  early_features,  // a small model on an earlier block
  fine_tune_end,   // training of the head and the last blocks
  train_all,       // training of all blocks
};
std::string_view to_string(Way way);

// Measurements of a block.
struct Probe {
  Block block;
  double log_me = 0;
  double accuracy = 0;  // held-out accuracy of a linear model on its features
};

struct Forecast {
  Way way = Way::last_features;
  std::string what;  // a layer, or the argument of --train
  double accuracy = 0, low = 0, high = 0;
  double seconds = 0;
  std::optional<double> measured = {};  // accuracy measured by check_ways
  std::optional<double> took = {};      // seconds measured by check_ways
};

struct Advice {
  std::string base;
  int64_t side = 0;                  // requested image size; 0 if none
  int64_t samples = 0, classes = 0;  // of the training data
  int64_t used = 0;                  // samples used for the measurements
  std::vector<Probe> probes;         // blocks in order, without the head
  std::vector<CurvePoint> curve;     // learning curve of the best block
  Extrapolation error;               // with all samples
  Extrapolation error_of_more;       // with ten times as many samples
  // Shift of the inputs of the base's first batch norm from its running statistics, in standard
  // deviations. Empty without batch norm.
  std::optional<double> shift = {};
  bool similar = false;             // the last block is about as good as the best one
  bool much = false;                // fine-tuning is better than small models, by the forecasts
  double steepness = 0;             // of `curve`
  std::vector<Forecast> forecasts;  // one per Way
  size_t choice = 0;                // index of the recommended forecast
  double seconds = 0;               // duration of the analysis

  const Forecast& chosen() const { return forecasts[choice]; }
};

struct AdviseOptions {
  int64_t most_samples = 2000;  // limit for the measurements
  int64_t side = 0;             // image size; 0 uses that of the base
  int threads = 1;
  uint64_t seed = 0;
};
Advice advise(const BaseNetwork& base, const DataConfig& data, const AdviseOptions& options,
              const FeatureProgress& progress = {});

// Tries all four ways and measures their accuracy on the test part. Each fine-tuning takes at most
// `budget` seconds and writes to a folder below `folder`.
void check_ways(const BaseNetwork& base, const std::string& data, const AdviseOptions& options,
                double budget, const std::filesystem::path& folder, Advice& advice);

// Text for a terminal: tables, the learning curve, and the recommendation.
std::string to_text(const Advice& advice, int columns, bool unicode);

}  // namespace artel::transfer
