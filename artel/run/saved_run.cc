#include "artel/run/saved_run.h"

#include "artel/base/error.h"
#include "artel/base/with_where.h"
#include "artel/run/run_folder.h"

namespace artel {

namespace fs = std::filesystem;

SavedRun open_run(const std::string& source, const std::string& config_file,
                  const std::vector<std::string>& overrides) {
  require(fs::exists(source), ErrorKind::not_found,
          "[{}] no such file or folder, expected a run or weights", source);
  SavedRun run;
  if (config_file.empty()) {
    const std::optional<RunFolder> folder = find_run(source);
    require(folder.has_value(), ErrorKind::not_found,
            "[{}] is not the folder of a run; for a weight file give --config", source);
    run.config = read_config(folder->config(), overrides);
    run.layout = folder->load_layout();
  } else {
    run.config = read_config(config_file, overrides);
    run.layout = open_data(run.config).layout();
  }
  run.augment = data::Augmentation::parse(run.config.data.augment).for_testing();
  run.cluster = std::make_unique<Cluster>();
  run.trainer = std::make_unique<Trainer>(*run.cluster, make_model(run.config.model, run.layout),
                                          trainer_options(run.config));
  run.trainer->build(run.sample());
  const NamedTensors weights = weights_for(run.config.model, source);
  with_where(source, [&] { run.trainer->load_weights(weights); });
  return run;
}

}  // namespace artel
