// The externally visible state of a run, during and after training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/observe/live.h"
#include "artel/run/folder/overview.h"

namespace artel {

struct LiveView {
  RunStatus status = RunStatus::dead;
  std::string remark;  // as in RunOverview
  // The last record of worker 0. Empty before the first one, and for runs of earlier versions.
  std::optional<observe::LiveRun> run;
};

// Throws an Error of kind not_found if it is not the folder of a run.
LiveView live_view(const std::filesystem::path& run);

// One line that says how the run ended; empty while it is running.
std::string ending_of(const LiveView& view, const std::filesystem::path& run);

// The newest run in progress in a folder. Throws an Error of kind not_found if none is running.
std::filesystem::path running_run(const std::filesystem::path& folder);

// {"run": ..., "status": ..., "remark": ..., "live": {...}}
std::string to_json(const LiveView& view, const std::filesystem::path& run);

}  // namespace artel
