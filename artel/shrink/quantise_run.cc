#include "artel/shrink/quantise_run.h"

#include <algorithm>
#include <set>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/nn/model.h"
#include "artel/predict/batches.h"
#include "artel/shrink/result_folder.h"
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
    if (options_.evaluate) result.before = test_quality(weights_);
    result.small = quantised({});
    if (options_.max_loss) keep_sensitive_layers(result);
    if (options_.evaluate) result.after = test_quality(result.small.weights);
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

  Quality test_quality(const NamedTensors& weights) {
    run_.load(weights, options_.source.path);
    const Quality quality = quality_of(run_, options_.source.path);
    if (&weights == &weights_) warn_of_few_samples(quality);
    return quality;
  }

  // Keeps the most sensitive layers float until `max_loss` is met. Measuring the sensitivity takes
  // one evaluation per layer.
  void keep_sensitive_layers(QuantisedRun& result) {
    const TuningSamples tuning = tuning_samples(run_);
    result.chosen_by = tuning.name;
    const auto quality = [&](const NamedTensors& weights) {
      run_.load(weights, options_.source.path);
      return quality_on(run_, tuning);
    };
    const Quality before = quality(weights_);
    std::vector<std::string> names;
    for (const ShrunkWeight& weight : result.small.matrices)
      if (weight.left.empty()) names.push_back(weight.name);
    for (const std::string& name : names) {
      std::set<std::string> others(names.begin(), names.end());
      others.erase(name);
      result.sensitivity.emplace_back(name, lost(before, quality(quantised(others).weights)));
    }
    std::ranges::stable_sort(result.sensitivity, std::ranges::greater(),
                             &std::pair<std::string, double>::second);
    std::set<std::string> kept;
    for (const auto& [name, loss] : result.sensitivity) {
      if (lost(before, quality(result.small.weights)) <= *options_.max_loss) return;
      kept.insert(name);
      result.small = quantised(kept);
    }
  }

  const QuantiseRunOptions& options_;
  SavedRun run_;
  NamedTensors weights_;
  Graph graph_;
};

}  // namespace

QuantisedRun quantise_run(const QuantiseRunOptions& options) { return Quantiser(options)(); }

void save_quantised(const QuantisedRun& run, const RunSource& source, const std::string& folder) {
  const RunFolder from = check_result(source.path, folder);
  save_result(source.path, folder, read_file(from.config()), run.small.weights);
}

}  // namespace artel::shrink
