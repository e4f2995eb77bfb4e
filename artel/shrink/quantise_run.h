// Quantises the weights of a trained run and saves the result as a run of its own, which `artel
// evaluate`, `predict`, and `generate` open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/run/folder/saved_run.h"
#include "artel/shrink/quality.h"
#include "artel/shrink/weights_of_few_bits.h"

namespace artel::shrink {

struct QuantiseRunOptions {
  RunSource source;
  QuantiseOptions form;
  std::vector<std::string> keep_float;  // prefixes of the names of weights that stay float
  // Upper limit of the quality lost (quality.h) on the tuning samples. The most sensitive layers
  // stay float until the limit is met; if no quantised layer meets it, all stay float.
  std::optional<double> max_loss = {};
  bool evaluate = true;  // measures `before` and `after` on the run's test data
};

struct QuantisedRun {
  SmallWeights small;
  Quality before, after;  // set if `evaluate`
  // For each layer, the quality lost if only that layer is quantised; the most sensitive layer
  // first. Set if `max_loss` is given, like `chosen_by`, the name of the samples that decided.
  std::vector<std::pair<std::string, double>> sensitivity;
  std::string chosen_by;
};

// Throws if the run has adapters.
QuantisedRun quantise_run(const QuantiseRunOptions& options);
// Writes the run to `folder`, which must not exist.
void save_quantised(const QuantisedRun& run, const RunSource& source, const std::string& folder);

}  // namespace artel::shrink
