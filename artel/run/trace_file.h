// What workers recorded of their steps, as files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/observe/trace_summary.h"
#include "artel/train/timeline.h"

namespace artel {

// The names of all workers by rank.
std::vector<std::string> worker_names(const Membership& membership);

// Writes the trace for Perfetto, and what it says to another file; that is returned, too. Nothing
// if there is no step in it.
std::optional<observe::TraceSummary> save_trace(const TimelineRecord& timeline,
                                                const std::vector<std::string>& workers,
                                                const std::filesystem::path& path,
                                                const std::filesystem::path& summary);

}  // namespace artel
