#include "artel/run/config/unused.h"

#include <algorithm>
#include <set>

#include "artel/base/plural.h"
#include "artel/data/sets.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/tensor.h"

namespace artel {
namespace {

// The keys whose values are not the defaults.
std::vector<std::string> keys_set(const RunConfig& config) {
  const std::vector<KeyDescription> defaults = config_keys(), now = config_keys(config);
  std::vector<std::string> names;
  for (size_t i = 0; i < now.size(); ++i)
    if (now[i].default_value != defaults[i].default_value) names.push_back(now[i].name);
  return names;
}

bool is_unused(const std::string& key, const DataConfig& data) {
  constexpr std::string_view kSection = "data.";
  return key.starts_with(kSection) && !data::uses_option(data.set, key.substr(kSection.size()));
}

// True for options of the networks that model.name selects.
bool is_of_zoo(const std::string& key) {
  static const std::set<std::string> of_all = {"model.name",    "model.layers",
                                               "model.weights", "model.new_layers",
                                               "model.units",   "model.adapters"};
  return key.starts_with("model.") && !of_all.contains(key);
}

bool has_own_test_part(const DataConfig& data) {
  return !data.test_path.empty() || data::has_test_part(data.set);
}

}  // namespace

std::vector<std::string> unused_settings(const RunConfig& config, int workers) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& key, const std::string& why) {
    lines.push_back(fmt::format("{} has no effect {}", key, why));
  };
  for (const std::string& key : keys_set(config)) {
    if (is_of_zoo(key) && !config.model.layers.empty()) add(key, "with model.layers");
    if (is_unused(key, config.data)) add(key, fmt::format("on the set '{}'", config.data.set));
  }
  if (!config.model.new_layers.empty() && config.model.weights.empty())
    add("model.new_layers", "without model.weights");
  if (config.data.fold > 0 && config.data.folds == 0) add("data.fold", "without data.folds");
  if (config.cluster.servers_inside && server_count(config) == 0)
    add("cluster.servers_inside", "without parameter servers");
  if (config.data.test_fraction != DataConfig().test_fraction && has_own_test_part(config.data))
    add("data.test_fraction", "on data with a test part of its own");
  const auto packing = config.cluster.strategy_options.of<PackingOptions>();
  if (workers == 1 && server_count(config) == 0 && !packing.compress.empty())
    add("cluster.compress", "on 1 worker");
  const StrategyOptions& options = config.cluster.strategy_options;
  const bool whole_gradients =
      server_count(config) == 0 && !find_strategy(config.cluster.strategy).workload &&
      options.of<PipelineOptions>().pipeline == 1 && options.of<TensorOptions>().tensor == 1 &&
      (workers == 1 ||
       (options.of<LocalStepsOptions>().local_steps == 1 && packing.compress.empty()));
  if (config.train.noise_every > 0 && !whole_gradients)
    add("train.noise_every",
        "with parameter servers, pipelines, tensor groups, local steps, compression or ddpg");
  return lines;
}

std::vector<std::string> unused_settings(const RunConfig& config, const RunData& data,
                                         const Parameters& parameters) {
  std::vector<std::string> lines;
  const TrainConfig& train = config.train;
  const auto& entries = parameters.entries();
  if (!train.freeze.empty() &&
      std::all_of(entries.begin(), entries.end(), [&](const ParameterEntry& entry) {
        return entry.is_state || begins_with_any(entry.name, train.freeze);
      }))
    lines.emplace_back("train.freeze holds all parameters: nothing is trained");
  const bool judged = train.test && (data.validation || data.test->size() > 0);
  if (train.target_accuracy > 0 && !judged)
    lines.emplace_back("train.target_accuracy has no effect without a test after each epoch");
  const int64_t per_epoch = std::max<int64_t>(1, data.train->size() / train.batch_size);
  const int64_t steps = train.steps > 0 ? train.steps : train.epochs * per_epoch;
  if (config.prune.weights > 0 && std::max(config.prune.end, config.prune.begin + 1) > steps)
    lines.push_back(fmt::format("prune.weights is not reached: prune.end is {}, and there are {}",
                                format_count(std::max(config.prune.end, config.prune.begin + 1)),
                                counted(steps, "step")));
  if (train.save_every > steps)
    lines.push_back(fmt::format("train.save_every has no effect: it is {}, and there are {}",
                                format_count(train.save_every), counted(steps, "step")));
  return lines;
}

}  // namespace artel
