// A run as one file, to send to somebody or to load into another program.
#pragma once

#include <filesystem>
#include <string>

namespace artel {

// Each throws an Error of kind not_found if it is not the folder of a run, and of kind corrupt if
// its metrics are broken. The run may be under way.

// A line for each step that has numbers, a column for each number, named in the first line.
std::string export_csv(const std::filesystem::path& run);
// {"run", "status", "remark", "summary", "config", "notes", "metrics": {name: [[step, value]]},
// "events": [...], "mistakes": as in mistakes.json or null, "texts": [lines of texts.jsonl]}
std::string export_json(const std::filesystem::path& run);
// A page without scripts that contains its pictures: result, curves, confusion matrix, mistakes,
// texts, events, notes, configuration.
std::string export_html(const std::filesystem::path& run);

}  // namespace artel
