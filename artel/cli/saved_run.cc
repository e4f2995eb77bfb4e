#include "artel/cli/saved_run.h"

#include "artel/base/error.h"
#include "artel/cli/run_folder.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

// The folder of the run that a path lies in: itself, or above a checkpoint.
RunFolder folder_of(const fs::path& source) {
  const fs::path path = fs::absolute(source).lexically_normal();
  for (fs::path folder = path; folder != folder.parent_path(); folder = folder.parent_path()) {
    const RunFolder candidate(folder);
    if (fs::exists(candidate.config()) && fs::exists(candidate.samples())) return candidate;
  }
  fail(ErrorKind::not_found, "[{}] is not the folder of a run; for a weight file give --config",
       source.string());
}

}  // namespace

SavedRun open_run(const std::string& source, const std::string& config_file,
                  const std::vector<std::string>& overrides) {
  require(fs::exists(source), ErrorKind::not_found,
          "[{}] no such file or folder, expected a run or weights", source);
  SavedRun run;
  if (config_file.empty()) {
    const RunFolder folder = folder_of(source);
    run.config = read_config(folder.config(), overrides);
    run.layout = folder.load_layout();
  } else {
    run.config = read_config(config_file, overrides);
    run.layout = open_data(run.config).layout();
  }
  run.augment = data::Augmentation::parse(run.config.data.augment).for_testing();
  run.cluster = std::make_unique<Cluster>();
  run.trainer = std::make_unique<Trainer>(
      *run.cluster, make_model(run.config.model, run.layout.classes), trainer_options(run.config));
  run.trainer->build(run.sample());
  run.trainer->load_weights(weights_at(source));
  return run;
}

}  // namespace artel::cli
