#include "artel/shrink/quality.h"

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/log.h"

namespace artel::shrink {
namespace {

constexpr int64_t kFewSamples = 100;

}  // namespace

Quality quality_of(const SavedRun& run, const std::string& source) {
  const Evaluation result = run.evaluate(Part::test);
  require(result.samples > 0, ErrorKind::invalid_argument,
          "[{}] the data has no test samples; set data.test_fraction, or skip the evaluation with "
          "--no-evaluation",
          source);
  Quality quality = {.loss = result.loss, .samples = result.samples};
  const bool of_text = run.layout.tokenizer != nullptr;
  if (!of_text && find_metric(result.metrics, "accuracy")) quality.accuracy = result.accuracy;
  return quality;
}

double lost(const Quality& before, const Quality& after) {
  if (before.accuracy && after.accuracy) return 100 * (*before.accuracy - *after.accuracy);
  return 100 * (std::exp(after.loss - before.loss) - 1);
}

std::string to_string(const Quality& quality) {
  std::string text = fmt::format("loss {:.4f}", quality.loss);
  if (quality.accuracy)
    text += fmt::format(", accuracy {:.4f}", *quality.accuracy);
  else
    text += fmt::format(", perplexity {:.3f}", std::exp(quality.loss));
  return text;
}

std::string lost_unit(const Quality& quality) {
  return quality.accuracy ? "points of accuracy" : "% of the perplexity";
}

void warn_of_few_samples(const Quality& quality) {
  if (quality.samples < kFewSamples)
    log(LogLevel::warning, "few test samples: got {}, expected at least {} for a reliable result",
        quality.samples, kFewSamples);
}

}  // namespace artel::shrink
