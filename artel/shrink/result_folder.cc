#include "artel/shrink/result_folder.h"

#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/checkpoint/checkpoint.h"

namespace artel::shrink {

namespace fs = std::filesystem;

void check_free(const std::string& folder) {
  require(!fs::exists(folder), ErrorKind::invalid_argument,
          "[{}] exists already; choose another folder", folder);
}

RunFolder check_result(const std::string& source, const std::string& folder) {
  std::optional<RunFolder> from = find_run(source);
  require(from.has_value(), ErrorKind::not_found, "[{}] is not the folder of a run", source);
  check_free(folder);
  return *std::move(from);
}

void save_result(const std::string& source, const std::string& folder, const std::string& config,
                 NamedTensors weights) {
  const RunFolder from = check_result(source, folder), to(folder);
  fs::create_directories(to.path());
  write_file_atomically(to.config(), config);
  to.save_layout(from.load_layout(), from.fingerprint());
  checkpoint::Checkpoint saved;
  saved.weights = std::move(weights);
  checkpoint::save_checkpoint(to.checkpoints(), saved);
}

}  // namespace artel::shrink
