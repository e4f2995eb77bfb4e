#include "artel/train/step/pruning.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "artel/base/error.h"
#include "artel/graph/op.h"

namespace artel {
namespace {

int64_t last_step(const PruningOptions& options, int64_t steps) {
  return options.end > 0 ? options.end : std::max(options.begin + 1, steps / 2);
}

// Sets the `count` smallest magnitudes to zero.
void prune_together(std::span<const PrunedValues> weights, double share) {
  std::vector<float> magnitudes;
  for (const PrunedValues& weight : weights)
    for (const float value : weight.values) magnitudes.push_back(std::fabs(value));
  const auto count = static_cast<size_t>(share * static_cast<double>(magnitudes.size()));
  if (count == 0) return;
  const auto at = magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(magnitudes.begin(), at, magnitudes.end());
  const float limit = *at;
  // Number of values equal to the limit that become zero, first ones first.
  size_t equal = count - static_cast<size_t>(std::count_if(magnitudes.begin(), at,
                                                           [&](float x) { return x < limit; }));
  for (const PrunedValues& weight : weights)
    for (size_t i = 0; i < weight.values.size(); ++i) {
      const float magnitude = std::fabs(weight.values[i]);
      if (magnitude > limit || (magnitude == limit && equal == 0)) continue;
      if (magnitude == limit) --equal;
      weight.values[i] = 0;
      if (!weight.average.empty()) weight.average[i] = 0;
    }
}

}  // namespace

std::vector<std::string> prunable_weights(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "dense" && node.op->name != "conv2d") continue;
    const ValueData& weight = graph.value(node.inputs[1]);
    if (weight.kind == ValueKind::parameter) names.insert(weight.whole_name());
  }
  return {names.begin(), names.end()};
}

double zeros_after(const PruningOptions& options, int64_t step, int64_t steps) {
  const int64_t last = last_step(options, steps);
  if (step >= last) return options.weights;
  const double left =
      1 - static_cast<double>(step - options.begin) / static_cast<double>(last - options.begin);
  return options.weights * (1 - left * left * left);
}

bool prunes_after(const PruningOptions& options, int64_t step, int64_t steps) {
  const int64_t last = last_step(options, steps);
  if (options.weights == 0 || step <= options.begin || step > last) return false;
  return step == last || (step - options.begin) % options.every == 0;
}

void prune_smallest(const std::vector<PrunedValues>& weights, double share, bool global) {
  require(share >= 0 && share < 1, ErrorKind::invalid_argument,
          "prune: got a share of {} of the weights, expected less than 1: nothing would be left",
          share);
  if (global) return prune_together(weights, share);
  for (const PrunedValues& weight : weights) prune_together({&weight, 1}, share);
}

}  // namespace artel
