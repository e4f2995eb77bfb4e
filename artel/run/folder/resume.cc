#include "artel/run/folder/resume.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/run/config/config_paths.h"
#include "artel/run/folder/fingerprint.h"

namespace artel {
namespace {

bool decides_the_result(const std::string& key) {
  static const std::vector<std::string> of_train = {
      "train.batch_size",      "train.keep_last_batch", "train.seed",
      "train.optimizer",       "train.schedule",        "train.loss",
      "train.label_smoothing", "train.class_weights",   "train.clip_norm",
      "train.freeze",          "train.precision",       "train.exact_convolutions"};
  // Weights to begin with are not read again.
  static const std::vector<std::string> unused = {"data.threads", "model.weights",
                                                  "model.new_layers", "distil.cache"};
  const auto among = [&](const std::vector<std::string>& keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  return among(of_train) || ((key.starts_with("data.") || key.starts_with("model.") ||
                              key.starts_with("distil.") || key.starts_with("prune.")) &&
                             !among(unused));
}

std::vector<std::string> changes_of(const RunFolder& folder, const RunConfig& config,
                                    const std::string& fingerprint) {
  std::vector<std::string> changes;
  const std::vector<KeyDescription> before = config_keys(read_config(folder.config()));
  const std::vector<KeyDescription> now = config_keys(config);
  const std::string trained_on = folder.fingerprint();
  const bool same = same_data(trained_on, fingerprint);
  // Data that has moved is the same data.
  const auto counts = [&](const std::string& key) {
    return decides_the_result(key) && !(is_path_key(key) && same && !trained_on.empty());
  };
  for (size_t i = 0; i < now.size(); ++i)
    if (counts(now[i].name) && now[i].default_value != before[i].default_value)
      changes.push_back(fmt::format("{} = {} (before: {})", now[i].name, now[i].default_value,
                                    before[i].default_value));
  if (changes.empty() && !same) changes.push_back("other samples in the data");
  return changes;
}

}  // namespace

std::vector<std::string> deciding_settings(const RunConfig& config) {
  std::vector<std::string> settings;
  for (const KeyDescription& key : config_keys(config))
    if (decides_the_result(key.name) && !is_path_key(key.name))
      settings.push_back(fmt::format("{} = {}", key.name, key.default_value));
  return settings;
}

void check_changes(const RunFolder& folder, const RunConfig& config, const std::string& fingerprint,
                   bool forced) {
  if (!std::filesystem::exists(folder.config())) return;
  const std::vector<std::string> changes = changes_of(folder, config, fingerprint);
  require(forced || changes.empty(), ErrorKind::invalid_argument,
          "[{}] --resume with {}; continue anyway with --force, or start another run",
          folder.path().string(), join(changes, ", "));
  for (const std::string& change : changes)
    log(LogLevel::warning, "{} continues with {}", folder.path().string(), change);
}

}  // namespace artel
