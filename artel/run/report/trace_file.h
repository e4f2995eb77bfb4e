// Files of recorded traces.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/observe/trace_summary.h"
#include "artel/train/loop/timeline.h"

namespace artel {

// The names of all workers by rank.
std::vector<std::string> worker_names(const Membership& membership);

// Writes the trace for Perfetto and its summary to another file, and returns the summary. Empty if
// the trace has no step.
std::optional<observe::TraceSummary> save_trace(const TimelineRecord& timeline,
                                                const std::vector<std::string>& workers,
                                                const std::filesystem::path& path,
                                                const std::filesystem::path& summary);

}  // namespace artel
