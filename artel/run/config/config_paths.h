// Resolution of the paths in a configuration.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/run/config/config.h"

namespace artel {

// True if the value of the key is a path.
bool is_path_key(const std::string& key);

// Makes the paths of a configuration absolute. Paths from its file (keys for which `in_file` holds)
// are relative to the file's `folder`, others to the working folder. A path from the file that
// exists only in the working folder is taken from there, as in earlier versions; returns a warning
// for each, which mentions the file as `name`.
std::vector<std::string> resolve_paths(RunConfig& config, const std::filesystem::path& folder,
                                       std::string_view name,
                                       const std::function<bool(const std::string&)>& in_file);

}  // namespace artel
