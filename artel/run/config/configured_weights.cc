// The weights that a configuration names (setup.h).
#include <algorithm>
#include <cstring>
#include <map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/with_where.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/checkpoint/weights.h"
#include "artel/nn/adapters.h"
#include "artel/nn/zoo/names.h"
#include "artel/optim/optimizer.h"
#include "artel/predict/sparse_weights.h"
#include "artel/run/config/advice.h"
#include "artel/run/config/published_config.h"
#include "artel/run/config/setup.h"
#include "artel/train/name_prefixes.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

fs::path published_weights(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"})
    if (fs::exists(folder / name)) return folder / name;
  fail(ErrorKind::not_found,
       "[{}] no weights: expected model.safetensors or pytorch_model.bin, whole or in pieces with "
       "an .index.json",
       folder.string());
}

// Throws if a file has an untied head while the network uses its token table.
void check_head(const ModelConfig& config, const NamedTensors& weights, const std::string& where) {
  const std::optional<nn::TokenHead> names = nn::token_head(config.name);
  if (!names || config.untied_head) return;
  const Tensor* const head = find_tensor(weights, names->weight);
  const Tensor* const table = find_tensor(weights, names->table);
  if (!head || !table) return;
  const bool same = head->dtype() == table->dtype() && head->shape() == table->shape() &&
                    std::memcmp(head->raw(), table->raw(), table->bytes()) == 0;
  require(same, ErrorKind::unsupported,
          "[{}] {} differs from {}, but the network has one table for both; set "
          "model.untied_head = true",
          where, names->weight, names->table);
}

void report_unused(const NamedTensors& weights, const Parameters& parameters,
                   const NamedTensors& elsewhere, const std::string& file) {
  std::vector<std::string> unused;
  for (const NamedTensor& each : weights)
    if (!parameters.contains(each.name) && !find_tensor(elsewhere, each.name))
      unused.push_back(each.name);
  if (unused.empty()) return;
  const size_t count = unused.size();
  constexpr size_t kShown = 3;
  if (count > kShown) {
    unused.resize(kShown);
    unused.emplace_back("...");
  }
  log(LogLevel::info, "{}: {} of {} tensors are not in the model and are skipped: {}", file, count,
      weights.size(), join(unused, ", "));
}

// Prefixes of the weights that keep their initial values: those of model.new_layers, and adapters
// that the file does not contain.
std::vector<std::string> initial_layers(const ModelConfig& config, const NamedTensors& weights) {
  std::vector<std::string> prefixes = config.new_layers;
  const bool trained_adapters = std::ranges::any_of(
      weights, [](const NamedTensor& each) { return each.name.starts_with(nn::kAdapterPrefix); });
  if (!config.adapters.empty() && !trained_adapters) prefixes.emplace_back(nn::kAdapterPrefix);
  return prefixes;
}

// Weights that were not trained have no average.
NamedTensors weights_in(checkpoint::Checkpoint saved, Weights which) {
  if (which == Weights::trained) return std::move(saved.weights);
  const std::string prefix = fmt::format("{}/", optim::kAverageSlot);
  std::map<std::string_view, Tensor*> averages;
  for (NamedTensor& tensor : saved.optimizer)
    if (tensor.name.starts_with(prefix))
      averages.emplace(std::string_view(tensor.name).substr(prefix.size()), &tensor.tensor);
  for (NamedTensor& weight : saved.weights)
    if (const auto average = averages.find(weight.name); average != averages.end())
      weight.tensor = std::move(*average->second);
  return std::move(saved.weights);
}

}  // namespace

bool is_gguf_file(const fs::path& path) { return path.extension() == ".gguf"; }

NamedTensors weights_at(const fs::path& path, Weights which) {
  if (!fs::is_directory(path)) {
    const auto best =
        path.filename() == "best" ? checkpoint::best_checkpoint(path.parent_path()) : std::nullopt;
    return best ? weights_in(checkpoint::load_checkpoint(*best), which)
                : checkpoint::load_weights(path);
  }
  if (fs::exists(path / kPublishedConfig)) return checkpoint::load_weights(published_weights(path));
  return weights_in(checkpoint::checkpoint_at(path), which);
}

NamedTensors weights_for(const ModelConfig& config, const fs::path& path, Weights which) {
  NamedTensors weights = nn::rename_published(config.name, with_zeros(weights_at(path, which)));
  check_head(config, weights, path.string());
  return weights;
}

void load_configured_weights(Trainer& trainer, const ModelConfig& config,
                             const NamedTensors& elsewhere) {
  if (config.weights.empty()) return;
  const fs::path published = fs::path(config.weights) / kPublishedConfig;
  if (fs::exists(published)) check_published(config, read_file(published), published.string());
  if (is_gguf_file(config.weights)) check_published(config, parse_gguf(map_file(config.weights)));
  const NamedTensors weights = weights_for(config, config.weights);
  check_prefixes("model.new_layers", config.new_layers, trainer.layout());
  const std::vector<std::string> initial = initial_layers(config, weights);
  with_where(config.weights, [&] {
    check_shapes(weights, trainer.layout(), initial);
    trainer.load_weights(weights,
                         [&](const std::string& name) { return !begins_with_any(name, initial); });
  });
  report_unused(weights, trainer.layout(), elsewhere, config.weights);
}

}  // namespace artel
