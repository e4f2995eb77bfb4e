#include "artel/shrink/prune_run.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/checkpoint/weights.h"
#include "artel/graph/op.h"
#include "artel/predict/batches.h"
#include "artel/predict/sparse_weights.h"
#include "artel/shrink/removable_units.h"
#include "artel/shrink/result_folder.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/step/pruning.h"

namespace artel::shrink {
namespace {

namespace fs = std::filesystem;

struct Size {
  int64_t parameters = 0;
  double operations = 0;
};

Size size_of_network(const Graph& graph) {
  Size size;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    size.parameters += graph.type(id).shape.elements();
  for (const Node& node : graph.nodes()) size.operations += node_flops(graph, node);
  return size;
}

class Pruner {
 public:
  explicit Pruner(const PruneRunOptions& options)
      : options_(options), run_(open_run(options.source)) {
    require(run_.config.model.adapters.empty(), ErrorKind::unsupported,
            "[{}] has adapters; merge them first: artel adapters {} -o merged.safetensors",
            options.source.path, options.source.path);
  }

  PrunedRun operator()() {
    PrunedRun result = {.config = run_.config, .weights = run_.trainer->weights()};
    for (NamedTensor& weight : result.weights) weight.tensor = weight.tensor.clone();
    set_size(result.config, result.parameters_before, result.operations_before);
    if (options_.evaluate) {
      result.before = quality_of(run_, options_.source.path);
      warn_of_few_samples(result.before);
    }
    if (options_.units > 0) remove_units(result);
    if (options_.weights > 0) remove_weights(result);
    set_size(result.config, result.parameters_after, result.operations_after);
    if (options_.evaluate) result.after = quality(result);
    return result;
  }

 private:
  Model model_of(const RunConfig& config) const { return make_model(config.model, run_.layout); }
  Graph graph_of(const RunConfig& config) const {
    return inference_graph(model_of(config), batch_of(run_.sample(), 1)).graph;
  }
  void set_size(const RunConfig& config, int64_t& parameters, double& operations) const {
    const Size size = size_of_network(graph_of(config));
    parameters = size.parameters;
    operations = size.operations;
  }

  void remove_units(PrunedRun& result) const {
    nn::LayerUnits units = nn::parse_units(result.config.model.units);
    nn::LayerUnits narrowed;  // partners of earlier layers
    bool any = false;
    for (const UnitsOfLayer& layer : units_of(model_of(result.config), run_.sample())) {
      PrunedLayer report = {layer.layer, layer.units, layer.units, layer.kept_because};
      if (is_kept(layer)) report.kept_because = "by request";
      if (report.kept_because.empty()) {
        const std::vector<int64_t> kept = most_important(layer, result.weights, options_.units);
        keep_units(layer, kept, result.weights);
        units[layer.layer] = report.units_after = std::ssize(kept);
        for (const std::string& partner : layer.partners)
          units[partner] = narrowed[partner] = std::ssize(kept);
        any = true;
      } else if (const auto partner = narrowed.find(layer.layer); partner != narrowed.end()) {
        report.units_after = partner->second;
        report.kept_because.clear();
      }
      result.layers.push_back(std::move(report));
    }
    require(any, ErrorKind::unsupported,
            "[{}] no layer has removable units: their outputs are read by layers other than dense "
            "and convolutions; try --weights",
            options_.source.path);
    result.config.model.units = nn::units_text(units);
  }

  bool is_kept(const UnitsOfLayer& layer) const {
    return begins_with_any(layer.layer, options_.keep) ||
           std::ranges::any_of(layer.partners, [&](const std::string& partner) {
             return begins_with_any(partner, options_.keep);
           });
  }

  void remove_weights(PrunedRun& result) const {
    std::vector<PrunedValues> pruned;
    for (const std::string& name : prunable_weights(graph_of(result.config))) {
      if (begins_with_any(name, options_.keep)) continue;
      const auto weight = std::ranges::find(result.weights, name, &NamedTensor::name);
      if (weight != result.weights.end()) pruned.push_back({name, weight->tensor.values<float>()});
    }
    require(!pruned.empty(), ErrorKind::unsupported,
            "[{}] has no weights of dense layers or convolutions to prune", options_.source.path);
    prune_smallest(pruned, options_.weights, options_.global);
    result.config.prune.keep_zeros = true;
    for (const PrunedValues& weight : pruned) count_zeros(weight, result);
  }

  static void count_zeros(const PrunedValues& weight, PrunedRun& result) {
    const std::string layer = weight.name.substr(0, weight.name.rfind('.'));
    auto report = std::ranges::find(result.layers, layer, &PrunedLayer::name);
    if (report == result.layers.end()) {
      result.layers.push_back({.name = layer});
      report = result.layers.end() - 1;
    }
    report->weights = std::ssize(weight.values);
    report->zeros = std::ranges::count(weight.values, 0.0F);
  }

  Quality quality(const PrunedRun& result) const {
    SavedRun small(result.config, run_.layout);
    small.load(result.weights, options_.source.path);
    return quality_of(small, options_.source.path);
  }

  const PruneRunOptions& options_;
  SavedRun run_;
};

}  // namespace

PrunedRun prune_run(const PruneRunOptions& options) {
  require(options.units > 0 || options.weights > 0, ErrorKind::invalid_argument,
          "prune: got neither --channels nor --weights, expected one of them");
  require(options.units < 1, ErrorKind::invalid_argument,
          "prune: removing {:.0f} % of the channels would leave nothing; remove fewer",
          100 * options.units);
  return Pruner(options)();
}

void save_pruned(const PrunedRun& run, const RunSource& source, const std::string& folder) {
  save_result(source.path, folder, to_toml(run.config), without_zeros(run.weights));
}

std::string finetuning_config(const std::string& folder) {
  return (fs::path(folder) / "finetune.toml").string();
}

std::string prepare_finetuning(const PrunedRun& run, int64_t epochs, const std::string& folder,
                               const std::vector<std::string>& overrides) {
  check_free(folder);
  fs::create_directories(folder);
  const fs::path weights = fs::absolute(fs::path(folder) / "pruned.safetensors");
  checkpoint::save_weights(weights, run.weights);
  RunConfig config = run.config;
  config.model.weights = weights.string();
  config.model.new_layers.clear();
  config.train.epochs = epochs;
  config.train.steps = 0;
  config.train.cache = false;
  for (auto& [key, value] : config.train.optimizer)
    if (key == "lr") value = fmt::format("{}", std::stod(value) / 10);
  config = parse_config(to_toml(config), finetuning_config(folder), overrides);
  write_file_atomically(finetuning_config(folder), to_toml(config));
  return finetuning_config(folder);
}

}  // namespace artel::shrink
