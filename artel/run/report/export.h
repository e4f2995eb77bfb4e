// Exports a run as a single file.
#pragma once

#include <filesystem>
#include <string>

namespace artel {

// All functions throw an Error of kind not_found for a folder that is not a run, and of kind
// corrupt if its metrics are broken. The run may be in progress.

// CSV with a header: one row per step with metrics, one column per metric.
std::string export_csv(const std::filesystem::path& run);
// {"run", "status", "remark", "summary", "config", "notes", "metrics": {name: [[step, value]]},
// "events": [...], "mistakes": as in mistakes.json or null, "texts": [lines of texts.jsonl]}
std::string export_json(const std::filesystem::path& run);
// A self-contained HTML page without scripts: result, curves, confusion matrix, mistakes, texts,
// events, notes, and configuration.
std::string export_html(const std::filesystem::path& run);

}  // namespace artel
