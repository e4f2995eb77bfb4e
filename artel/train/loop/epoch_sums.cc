#include "artel/train/loop/epoch_sums.h"

#include <utility>

#include "artel/base/log.h"
#include "artel/base/text.h"

namespace artel {

void continue_epoch_sums(TrainerState& state, const Metrics& metrics) {
  std::vector<std::string> counting;
  for (const Metrics::Part& part : metrics.parts())
    counting.push_back(fmt::format("{} {}", part.metric.name, to_string(part.shape)));
  const std::vector<std::string> before = std::exchange(state.counted, counting);
  const bool unknown = before.empty() && state.epoch.metrics.size() == metrics.sums();
  if (state.epoch.samples == 0 || before == counting || unknown) return;
  state.epoch.metrics.clear();
  if (state.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: the epoch began with the metrics {} and continues with {}, which cover "
        "only its remaining steps",
        state.step, before.empty() ? "of an earlier version" : artel::join(before, ", "),
        counting.empty() ? "none" : artel::join(counting, ", "));
}

void add_to_epoch(TrainerState& state, const Strategy::Outcome& outcome) {
  auto& epoch = state.epoch;
  if (outcome.noise) {
    epoch.noise.variance += outcome.noise->variance;
    epoch.noise.square += outcome.noise->square;
  }
  if (!outcome.together) return;
  const Strategy::Counts& counts = *outcome.together;
  epoch.samples += counts.samples;
  epoch.loss += counts.loss;
  epoch.weight += counts.weight.value_or(static_cast<double>(counts.samples));
  epoch.metrics.resize(counts.metrics.size());
  for (size_t i = 0; i < counts.metrics.size(); ++i) epoch.metrics[i] += counts.metrics[i];
}

std::optional<double> noise_scale_of(const GradientNoise& sums) {
  if (!(sums.square > 0)) return {};
  return sums.variance / sums.square;
}

}  // namespace artel
