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
  bool of_text = false;  // the network predicts tokens, so its loss has a perplexity
};

// Evaluates the run on its test data. Throws if there are no test samples; `source` is the run's
// name in the message.
Quality quality_of(const SavedRun& run, const std::string& source);

// Samples for decisions, such as which layers stay float. They are not the test samples, so test
// results stay unbiased.
struct TuningSamples {
  data::DatasetPtr samples;
  std::string name;  // "1,200 validation samples"
};
// The validation part or, without one, at most 2,000 of the training samples.
TuningSamples tuning_samples(const SavedRun& run);
Quality quality_on(const SavedRun& run, const TuningSamples& tuning);

// Quality lost between two networks: percentage points of accuracy, per cent of perplexity for
// language models, or per cent of the loss.
double lost(const Quality& before, const Quality& after);
// "loss 0.1, accuracy 0.98"; language models have a perplexity, regressions only a loss.
std::string to_string(const Quality& quality);
// The unit of `lost`.
std::string lost_unit(const Quality& quality);

// Logs a warning if the test data is too small for a reliable comparison.
void warn_of_few_samples(const Quality& quality);

}  // namespace artel::shrink
