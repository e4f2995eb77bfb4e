#include "artel/run/saved_run.h"

#include "artel/base/error.h"
#include "artel/base/with_where.h"
#include "artel/run/run_folder.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

SavedRun untrained(const std::string& source, const std::string& config_file,
                   const std::vector<std::string>& overrides) {
  require(fs::exists(source), ErrorKind::not_found,
          "[{}] no such file or folder, expected a run or weights", source);
  if (!config_file.empty()) {
    const RunConfig config = read_config(config_file, overrides);
    return SavedRun(config, open_data(config).layout());
  }
  const std::optional<RunFolder> folder = find_run(source);
  require(folder.has_value(), ErrorKind::not_found,
          "[{}] is not the folder of a run; for a weight file give --config", source);
  const RunConfig config = read_config(folder->config(), overrides);
  return SavedRun(config, folder->load_layout());
}

}  // namespace

SavedRun::SavedRun(RunConfig given, data::SampleLayout samples)
    : config(std::move(given)),
      layout(std::move(samples)),
      augment(data::Augmentation::parse(config.data.augment).for_testing()),
      cluster(std::make_unique<Cluster>()),
      trainer(std::make_unique<Trainer>(*cluster, make_model(config.model, layout),
                                        trainer_options(config))) {
  trainer->build(sample());
}

void SavedRun::load(const NamedTensors& weights, const std::string& where) {
  with_where(where, [&] { trainer->load_weights(weights); });
}

Evaluation SavedRun::evaluate() const {
  return trainer->evaluate(open_data(config).split.test, augment);
}

SavedRun open_run(const std::string& source, const std::string& config_file,
                  const std::vector<std::string>& overrides) {
  SavedRun run = untrained(source, config_file, overrides);
  run.load(weights_for(run.config.model, source), source);
  return run;
}

}  // namespace artel
