#include "artel/shrink/quality.h"

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/data/text/tokenizer.h"

namespace artel::shrink {
namespace {

constexpr int64_t kFewSamples = 100, kMostTuningSamples = 2000;

Quality quality_from(const Evaluation& result, const data::SampleLayout& layout) {
  const bool of_text = layout.tokenizer && layout.classes == layout.tokenizer->size();
  Quality quality = {.loss = result.loss, .samples = result.samples, .of_text = of_text};
  if (!of_text && find_metric(result.metrics, "accuracy")) quality.accuracy = result.accuracy;
  return quality;
}

// At most `most` samples, evenly spaced.
data::DatasetPtr some_of(const data::DatasetPtr& samples, int64_t most) {
  const int64_t size = samples->size();
  if (size <= most) return samples;
  std::vector<int64_t> some;
  for (int64_t i = 0; i < most; ++i) some.push_back(i * size / most);
  return data::subset(samples, some);
}

}  // namespace

Quality quality_of(const SavedRun& run, const std::string& source) {
  const Evaluation result = run.evaluate(Part::test);
  require(result.samples > 0, ErrorKind::invalid_argument,
          "[{}] the data has no test samples; set data.test_fraction, or skip the evaluation with "
          "--no-evaluation",
          source);
  return quality_from(result, run.layout);
}

TuningSamples tuning_samples(const SavedRun& run) {
  const RunData data = open_data(run.config, run.layout.table);
  const bool validates = data.validation && data.validation->size() > 0;
  const data::DatasetPtr samples =
      validates ? data.validation : some_of(data.train, kMostTuningSamples);
  return {samples, fmt::format("{} {} samples", format_count(samples->size()),
                               validates ? "validation" : "training")};
}

Quality quality_on(const SavedRun& run, const TuningSamples& tuning) {
  return quality_from(run.trainer->evaluate(tuning.samples, run.augment), run.layout);
}

double lost(const Quality& before, const Quality& after) {
  if (before.accuracy && after.accuracy) return 100 * (*before.accuracy - *after.accuracy);
  if (before.of_text) return 100 * (std::exp(after.loss - before.loss) - 1);
  if (after.loss == before.loss) return 0;
  return 100 * (after.loss - before.loss) / std::fabs(before.loss);
}

std::string to_string(const Quality& quality) {
  const std::string loss = fmt::format("loss {:.4f}", quality.loss);
  if (quality.accuracy) return loss + fmt::format(", accuracy {:.4f}", *quality.accuracy);
  if (quality.of_text) return loss + fmt::format(", perplexity {:.3f}", std::exp(quality.loss));
  return loss;
}

std::string lost_unit(const Quality& quality) {
  if (quality.accuracy) return "points of accuracy";
  return quality.of_text ? "% of the perplexity" : "% of the loss";
}

void warn_of_few_samples(const Quality& quality) {
  if (quality.samples < kFewSamples)
    log(LogLevel::warning, "few test samples: got {}, expected at least {} for a reliable result",
        quality.samples, kFewSamples);
}

}  // namespace artel::shrink
