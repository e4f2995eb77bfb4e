#include "artel/run/config/config_paths.h"

#include <fmt/format.h>

#include "artel/data/files.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

struct PathKey {
  const char* key;
  std::string* value;
  bool only_if_there;  // else it is something other than a path
};

std::vector<PathKey> path_keys(RunConfig& config) {
  std::vector<PathKey> keys = {{"data.path", &config.data.path, false},
                               {"data.test_path", &config.data.test_path, false},
                               {"data.tokenizer", &config.data.tokenizer, true},
                               {"model.weights", &config.model.weights, false}};
  for (std::string& teacher : config.distil.teachers)
    keys.push_back({"distil.teachers", &teacher, false});
  return keys;
}

}  // namespace

bool is_path_key(const std::string& key) {
  RunConfig config;
  for (const PathKey& each : path_keys(config))
    if (key == each.key) return true;
  return false;
}

std::vector<std::string> resolve_paths(RunConfig& config, const fs::path& folder,
                                       std::string_view name,
                                       const std::function<bool(const std::string&)>& in_file) {
  std::vector<std::string> notes;
  for (const auto& [key, value, only_if_there] : path_keys(config)) {
    if (value->empty() || fs::path(*value).is_absolute()) continue;
    const auto below = [path = fs::path(*value)](const fs::path& base) {
      return fs::absolute(base / path).lexically_normal();
    };
    const fs::path here = below(""), beside = in_file(key) ? below(folder) : here;
    const bool found = data::is_there(beside);
    if (!found && here != beside && data::is_there(here)) {
      notes.push_back(
          fmt::format("[{}] {}: no '{}' next to this file; using the one in the working folder: {}",
                      name, key, *value, here.string()));
      *value = here.string();
    } else if (found || !only_if_there) {
      *value = beside.string();
    }
  }
  return notes;
}

}  // namespace artel
