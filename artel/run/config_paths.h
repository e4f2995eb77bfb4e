// Where the paths of a configuration lead.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/run/config.h"

namespace artel {

// Whether a key is a path.
bool is_path_key(const std::string& key);

// Makes the paths of a configuration absolute, so that they mean the same from any folder. Those
// that its file gives are relative to the file's `folder`, the others to the working folder. What
// only the working folder has is taken from there, as it was before paths were relative to the
// file; returns a line for each of these. `in_file` says which keys the file decides, `name` names
// it in the lines.
std::vector<std::string> resolve_paths(RunConfig& config, const std::filesystem::path& folder,
                                       std::string_view name,
                                       const std::function<bool(const std::string&)>& in_file);

}  // namespace artel
