// Test results of a network and of its smaller version, and the difference between them.
#pragma once

#include <optional>
#include <string>

#include "artel/run/folder/saved_run.h"

namespace artel::shrink {

struct Quality {
  double loss = 0;
  std::optional<double> accuracy = {};
  int64_t samples = 0;
};

// Evaluates the run on its test data. Throws if there are no test samples; `source` is the run's
// name in the message.
Quality quality_of(const SavedRun& run, const std::string& source);
// Quality lost between two networks: percentage points of accuracy, or per cent of perplexity.
double lost(const Quality& before, const Quality& after);
// "loss 0.1, accuracy 0.98", or loss and perplexity.
std::string to_string(const Quality& quality);
// The unit of `lost`.
std::string lost_unit(const Quality& quality);

// Logs a warning if the test data is too small for a reliable comparison.
void warn_of_few_samples(const Quality& quality);

}  // namespace artel::shrink
