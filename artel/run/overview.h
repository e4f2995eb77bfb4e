// What can be said about a run from its folder alone, whether it is being trained or not.
//
//   for (const artel::RunOverview& run : artel::overviews("runs"))
//     artel::println("{}: {}", run.path.string(), artel::to_string(run.status));
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artel {

enum class RunStatus {
  running,   // some process writes to it
  finished,  // as far as its configuration asks
  stopped,   // by a signal or a callback; it can be resumed
  failed,    // with an error, which is known
  dead,      // its process ended without a word
};
std::string_view to_string(RunStatus status);
// Throws an Error that lists the words.
RunStatus run_status(std::string_view word);

struct RunOverview {
  std::filesystem::path path;
  RunStatus status = RunStatus::dead;
  std::string remark;  // why it failed, who trains it or what stopped it
  int64_t step = 0;
  double seconds = 0;            // of training
  std::optional<double> loss;    // the last one in training
  std::string metric_name = {};  // such as "test accuracy"
  std::optional<double> metric;  // its last value
  bool diverged = false;         // the loss ended far above its first value
  uint64_t bytes = 0;            // on disk
};

// Throws an Error of kind not_found if it is not the folder of a run. Files that are broken or
// missing leave their members as they are.
RunOverview overview(const std::filesystem::path& run);
// The folders of all runs in a folder, up to two levels below it, by name; or the folder itself.
std::vector<std::filesystem::path> run_folders(const std::filesystem::path& folder);
std::vector<RunOverview> overviews(const std::filesystem::path& folder);

// The settings in which configurations differ: the name of a key and its value in each run.
struct ChangedKey {
  std::string name;
  std::vector<std::string> values;
};
std::vector<ChangedKey> changed_keys(const std::vector<std::filesystem::path>& runs);

}  // namespace artel
