#include "artel/shrink/quantise_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/nn/model.h"
#include "artel/predict/batches.h"
#include "artel/run/folder/run_folder.h"
#include "artel/train/name_prefixes.h"

namespace artel::shrink {
namespace {

class Quantiser {
 public:
  explicit Quantiser(const QuantiseRunOptions& options)
      : options_(options), run_(open_run(options.source)) {
    require(run_.config.model.adapters.empty(), ErrorKind::unsupported,
            "[{}] has adapters; merge them first: artel adapters {} -o merged.safetensors",
            options.source.path, options.source.path);
    weights_ = run_.trainer->weights();
    graph_ = inference_graph(make_model(run_.config.model, run_.layout), batch_of(run_.sample(), 1))
                 .graph;
  }

  QuantisedRun operator()() {
    QuantisedRun result;
    if (options_.evaluate || options_.max_loss) result.before = quality(weights_);
    result.small = quantised(kept_);
    if (options_.max_loss) keep_sensitive_layers(result);
    if (options_.evaluate || options_.max_loss) result.after = quality(result.small.weights);
    return result;
  }

 private:
  // Keeps the weights in `kept` float, in addition to those in the options.
  SmallWeights quantised(const std::set<std::string>& kept) const {
    return quantise(graph_, weights_, {options_.form, [&](const std::string& name) {
                                         return kept.contains(name) ||
                                                begins_with_any(name, options_.keep_float);
                                       }});
  }

  Quality quality(const NamedTensors& weights) {
    run_.load(weights, options_.source.path);
    const Quality quality = quality_of(run_, options_.source.path);
    if (!std::exchange(warned_, true)) warn_of_few_samples(quality);
    return quality;
  }

  // Keeps the most sensitive layers float until `max_loss` is met. Measuring the sensitivity takes
  // one evaluation per layer.
  void keep_sensitive_layers(QuantisedRun& result) {
    std::vector<std::string> names;
    for (const ShrunkWeight& weight : result.small.matrices)
      if (weight.left.empty()) names.push_back(weight.name);
    for (const std::string& name : names) {
      std::set<std::string> others(names.begin(), names.end());
      others.erase(name);
      const double loss = lost(result.before, quality(quantised(others).weights));
      result.sensitivity.emplace_back(name, loss);
    }
    std::ranges::stable_sort(result.sensitivity, std::ranges::greater(),
                             &std::pair<std::string, double>::second);
    for (const auto& [name, loss] : result.sensitivity) {
      if (lost(result.before, quality(result.small.weights)) <= *options_.max_loss) return;
      kept_.insert(name);
      result.small = quantised(kept_);
    }
  }

  const QuantiseRunOptions& options_;
  SavedRun run_;
  NamedTensors weights_;
  Graph graph_;
  std::set<std::string> kept_;
  bool warned_ = false;
};

}  // namespace

QuantisedRun quantise_run(const QuantiseRunOptions& options) { return Quantiser(options)(); }

void save_quantised(const QuantisedRun& run, const RunSource& source, const std::string& folder) {
  const std::optional<RunFolder> from = find_run(source.path);
  require(from.has_value(), ErrorKind::not_found, "[{}] is not the folder of a run", source.path);
  const RunFolder to(folder);
  require(!std::filesystem::exists(to.path()), ErrorKind::invalid_argument,
          "[{}] exists already; choose another folder", folder);
  std::filesystem::create_directories(to.path());
  write_file_atomically(to.config(), read_file(from->config()));
  to.save_layout(from->load_layout(), from->fingerprint());
  checkpoint::Checkpoint saved;
  saved.weights = run.small.weights;
  checkpoint::save_checkpoint(to.checkpoints(), saved);
}

}  // namespace artel::shrink
