// The advisor: how to use a base on data, by measurements instead of rules about both.
//
// Two questions decide: how much data there is, and how similar it is to what the base has seen. A
// linear model on the features of each block, on growing parts of the data, answers both: the curve
// of its errors says what more data brings, and where in the base its errors are least says how far
// up the base is of use. What is forecast for fine-tuning follows from these by fixed rules
// (docs/transfer.md); `check_ways` measures it.
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
  last_features,   // a small model on what the head is given
  early_features,  // a small model on an earlier block
  fine_tune_end,   // the head and the last blocks are trained
  train_all,       // all blocks are trained
};
std::string_view to_string(Way way);

// What is known of a block.
struct Probe {
  Block block;
  double log_me = 0;
  double accuracy = 0;  // of a linear model on its features, on samples that were held out
};

struct Forecast {
  Way way = Way::last_features;
  std::string what;  // a layer, or what --train would be
  double accuracy = 0, low = 0, high = 0;
  double seconds = 0;
  std::optional<double> measured = {};  // accuracy that check_ways has found
  std::optional<double> took = {};      // seconds
};

struct Advice {
  std::string base;
  int64_t side = 0;                  // of images, if one was asked for
  int64_t samples = 0, classes = 0;  // to train with
  int64_t used = 0;                  // of them for the measurements
  std::vector<Probe> probes;         // from the first block to the last before the head
  std::vector<CurvePoint> curve;     // of the best block
  Extrapolation error;               // with all samples,
  Extrapolation error_of_more;       // and with ten times as many
  // How far the means of the base's first normalised layers are from those in its own training, in
  // deviations; nothing without batch norm.
  std::optional<double> shift = {};
  bool similar = false;             // the last block is as good as any
  bool much = false;                // as for fine-tuning
  std::vector<Forecast> forecasts;  // of the four ways
  size_t choice = 0;                // of them
  double seconds = 0;               // that all of this took

  const Forecast& chosen() const { return forecasts[choice]; }
};

struct AdviseOptions {
  int64_t most_samples = 2000;  // to measure with
  int64_t side = 0;             // of images; 0: as the base was trained
  int threads = 1;
  uint64_t seed = 0;
};
Advice advise(const BaseNetwork& base, const DataConfig& data, const AdviseOptions& options,
              const FeatureProgress& progress = {});

// Goes all four ways and measures the accuracy of each on the test part; fine-tuning may take
// `budget` seconds each, and goes to folders below `folder`.
void check_ways(const BaseNetwork& base, const std::string& data, const AdviseOptions& options,
                double budget, const std::filesystem::path& folder, Advice& advice);

// For a terminal: tables, the curve, and what to do.
std::string to_text(const Advice& advice, int columns, bool unicode);

}  // namespace artel::transfer
