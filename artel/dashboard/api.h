// What the dashboard's page asks for, as JSON, and what Prometheus asks for. Functions of the
// catalogue alone: no HTTP here.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "artel/dashboard/catalogue.h"

namespace artel::dashboard {

// [{"name", "status", "remark", "step", "seconds", "begun", "loss", "metric_name", "metric",
// "bytes", "version"}, ...]
std::string runs_json(Catalogue& catalogue);

// {"key", "values": {run: value, ...}}: a setting such as "train.batch_size", or the last value of
// a metric, "test/accuracy" or "accuracy". Runs that have neither are left out.
std::string values_json(Catalogue& catalogue, const std::string& key);

struct SeriesRequest {
  size_t points = 1000;  // of each curve, about
  int64_t from = std::numeric_limits<int64_t>::min(), to = std::numeric_limits<int64_t>::max();
};
// {"series": {"train/loss": {"x": [steps], "y": [values]}, ...}, "events": [{"step", "kind",
// "text"}]}
std::string series_json(Catalogue& catalogue, const std::string& run, const SeriesRequest& request);

// {"overview": ..., "config": TOML, "summary": JSON, "notes": text, "settings": {key: value},
// "files": [names], "mistakes": as in mistakes.json, "texts": the newest of texts.jsonl}
std::string run_json(Catalogue& catalogue, const std::string& run);

// The last record of worker 0 (live.json), with the run's status.
std::string live_json(Catalogue& catalogue, const std::string& run);

// Where the time of each worker went: {"at": [seconds], "step": [...], "workers": {name:
// {"computing": [...], "data": [...], "waiting": [...], "wire": [...]}}}, at most `most` moments.
std::string history_json(Catalogue& catalogue, const std::string& run, size_t most = 400);

// What the last trace of the run says (observe/trace_summary.h); null: there is none.
std::string trace_json(Catalogue& catalogue, const std::string& run);

// [{"key", "values": [one for each run]}]: settings in which the runs differ.
std::string differences_json(Catalogue& catalogue, const std::vector<std::string>& runs);

// The files of a run that the page shows, and their types; empty: not one of them.
std::string type_of_file(const std::string& name);

// Text for Prometheus; docs/observing.md lists the names.
std::string prometheus_text(Catalogue& catalogue);

}  // namespace artel::dashboard
