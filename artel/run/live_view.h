// What can be seen of a run from outside while it is being trained, and after its end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/observe/live.h"
#include "artel/run/overview.h"

namespace artel {

struct LiveView {
  RunStatus status = RunStatus::dead;
  std::string remark;  // as in RunOverview
  // The last record of worker 0; nothing before the first one, and of runs of earlier versions.
  std::optional<observe::LiveRun> run;
};

// Throws an Error of kind not_found if it is not the folder of a run.
LiveView live_view(const std::filesystem::path& run);

// How a run that is not being trained ended, in one line; empty: it is being trained.
std::string ending_of(const LiveView& view, const std::filesystem::path& run);

// The run in a folder of runs that is being trained and was begun last. Throws an Error of kind
// not_found if there is none.
std::filesystem::path running_run(const std::filesystem::path& folder);

// {"run": ..., "status": ..., "remark": ..., "live": {...}}
std::string to_json(const LiveView& view, const std::filesystem::path& run);

}  // namespace artel
