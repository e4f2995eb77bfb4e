#include "artel/run/folder/saved_run.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/with_where.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/data/sets.h"
#include "artel/data/text/tokenizer.h"
#include "artel/run/folder/fingerprint.h"
#include "artel/run/folder/run_folder.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/registry.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostClasses = 100;
constexpr int64_t kMostSparseFeatures = 10'000;  // more are judged without dense rows

// The metrics of the configuration, plus `more_metrics` for classes.
TrainerOptions options_with(const RunConfig& config, const data::SampleLayout& layout,
                            const std::vector<std::string>& more) {
  TrainerOptions options = trainer_options(config, layout);
  const bool of_tokens = layout.tokenizer && layout.classes == layout.tokenizer->size();
  const bool too_wide =
      data::is_sparse(config.data.set) && layout.input.elements() > kMostSparseFeatures;
  if (layout.classes < 2 || layout.classes > kMostClasses || of_tokens || too_wide ||
      find_strategy(config.cluster.strategy).workload)
    return options;
  std::vector<Metric>& metrics = options.metrics;
  const auto add = [&](const std::string& name) {
    if (std::any_of(metrics.begin(), metrics.end(),
                    [&](const Metric& metric) { return metric.name == name; }))
      return;
    metrics.push_back(metric_by_name(name));
    metrics.back().where_it_fits = true;
  };
  if (metrics.empty() && !more.empty()) add("accuracy");
  for (const std::string& name : more) add(name);
  return options;
}

// True if the overrides select other data, so that no warning is needed.
bool asks_for_other_data(const std::vector<std::string>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const std::string& text) {
    const std::string_view key = trim(std::string_view(text).substr(0, text.find('=')));
    return key == "data.set" || key == "data.path" || key == "data.test_path";
  });
}

SavedRun untrained(const RunSource& asked, const std::shared_ptr<Cluster>& workers) {
  const auto& [source, config_file, overrides, best, more_metrics, trained] = asked;
  require(fs::exists(source), ErrorKind::not_found,
          "[{}] no such file or folder, expected a run or weights", source);
  if (!config_file.empty()) {
    const RunConfig config = read_config(config_file, overrides);
    return SavedRun(config, open_data(config).layout(), more_metrics, workers);
  }
  const std::optional<RunFolder> folder = find_run(source);
  require(folder.has_value(), ErrorKind::not_found,
          "[{}] is not the folder of a run; for a weight file give --config", source);
  RunConfig config = read_config(folder->config(), overrides);
  data::SampleLayout layout = folder->load_layout();
  // The vocabulary of the trained network, independent of the present data.
  if (layout.tokenizer && layout.classes != layout.tokenizer->size())
    config.data.tokenizer = folder->tokenizer().string();
  // Likewise the size that was chosen for its pictures.
  if (config.data.set == "folder" && config.data.image_size == 0 &&
      layout.input[1] == layout.input[2])
    config.data.image_size = layout.input[1];
  SavedRun run(config, std::move(layout), more_metrics, workers);
  if (!asks_for_other_data(overrides)) run.trained_on = folder->fingerprint();
  return run;
}

fs::path best_of(const std::string& source) {
  const std::optional<RunFolder> folder = find_run(source);
  require(folder.has_value(), ErrorKind::not_found,
          "[{}] is not the folder of a run, which --best is about", source);
  const std::optional<fs::path> best = checkpoint::best_checkpoint(folder->checkpoints());
  require(best.has_value(), ErrorKind::not_found,
          "[{}] no checkpoint is marked as the best: no epoch was finished; try without --best",
          source);
  return *best;
}

}  // namespace

SavedRun::SavedRun(RunConfig given, data::SampleLayout samples,
                   const std::vector<std::string>& more_metrics, std::shared_ptr<Cluster> workers)
    : config(std::move(given)),
      layout(std::move(samples)),
      augment(data::Augmentation::parse(config.data.augment).for_testing()),
      cluster(workers ? std::move(workers) : std::make_shared<Cluster>()),
      trainer(std::make_unique<Trainer>(*cluster, make_model(config.model, layout),
                                        options_with(config, layout, more_metrics))) {
  trainer->build(sample());
}

void SavedRun::load(const NamedTensors& weights, const std::string& where) {
  with_where(where, [&] { trainer->load_for_inference(weights); });
}

Evaluation SavedRun::evaluate(Part part, const TestProgress& progress, int64_t mistakes) const {
  const RunData data = open_data(config, layout.table);
  if (!trained_on.empty() && !same_data(trained_on, fingerprint_of(config, data)))
    log(LogLevel::warning,
        "the data{} differs from the training data: its files or the data.* settings have "
        "changed since",
        config.data.path.empty() ? "" : fmt::format(" at {}", config.data.path));
  constexpr int64_t kBatch = 256;
  return trainer->evaluate(data.at(part), augment, kBatch, progress, mistakes);
}

std::string describe_checkpoint(const RunSource& source) {
  const RunFolder folder(source.path);
  if (!source.config_file.empty() || !folder.used()) return "";
  const std::vector<fs::path> all = checkpoint::list_checkpoints(folder.checkpoints());
  const std::optional<fs::path> best = checkpoint::best_checkpoint(folder.checkpoints());
  const auto name = [](const fs::path& path) { return path.filename().string(); };
  if (source.best && best)
    return fmt::format("{}, the best checkpoint of {}", name(*best), source.path);
  if (all.empty()) return "";
  const bool better = best && name(*best) != name(all.back());
  return fmt::format("{}, the newest checkpoint of {}{}", name(all.back()), source.path,
                     better ? fmt::format("; --best uses {}", name(*best)) : "");
}

std::string weights_path(const RunSource& source) {
  return source.best ? best_of(source.path).string() : source.path;
}

SavedRun open_run(const RunSource& source, std::shared_ptr<Cluster> workers) {
  SavedRun run = untrained(source, workers);
  const std::string weights = weights_path(source);
  run.load(
      weights_for(run.config.model, weights, source.trained ? Weights::trained : Weights::averaged),
      weights);
  if (run.config.cluster.strategy_options.of<PipelineOptions>().pipeline > 1)
    run.trainer->divide_for_predictions();
  return run;
}

}  // namespace artel
