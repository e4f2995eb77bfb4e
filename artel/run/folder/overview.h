// The overview of a run, from its folder alone.
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
  running,   // a process writes to it
  finished,  // it reached the end of its configuration
  stopped,   // by a signal or a callback; resumable
  failed,    // with a recorded error
  dead,      // its process disappeared without a message
};
std::string_view to_string(RunStatus status);
// Throws an Error that lists the valid words.
RunStatus run_status(std::string_view word);

struct RunOverview {
  std::filesystem::path path;
  RunStatus status = RunStatus::dead;
  std::string remark;  // the error, the training process, or the reason of the stop
  int64_t step = 0;
  double seconds = 0;            // training time
  std::optional<double> loss;    // last training loss
  std::string metric_name = {};  // such as "test accuracy"
  std::optional<double> metric;  // its last value
  bool diverged = false;         // the loss ended far above its first value
  uint64_t bytes = 0;            // on disk
};

// Throws an Error of kind not_found for a folder that is not a run. Broken or missing files leave
// their members at the defaults.
RunOverview overview(const std::filesystem::path& run);
// All run folders up to two levels below a folder, by name; or the folder itself if it is a run.
std::vector<std::filesystem::path> run_folders(const std::filesystem::path& folder);
std::vector<RunOverview> overviews(const std::filesystem::path& folder);

// A setting in which configurations differ: the key and its value in each run.
struct ChangedKey {
  std::string name;
  std::vector<std::string> values;
};
std::vector<ChangedKey> changed_keys(const std::vector<std::filesystem::path>& runs);

}  // namespace artel
