// The dashboard's JSON API and Prometheus metrics, as functions of the catalogue, without HTTP.
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
// a metric, "test/accuracy" or "accuracy". Omits runs that have neither.
std::string values_json(Catalogue& catalogue, const std::string& key);

struct SeriesRequest {
  size_t points = 1000;  // approximate number per curve
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

// Time shares of each worker: {"at": [seconds], "step": [...], "workers": {name: {"computing":
// [...], "data": [...], "waiting": [...], "wire": [...]}}}, for at most `most` points in time.
std::string history_json(Catalogue& catalogue, const std::string& run, size_t most = 400);

// The summary of the run's last trace (observe/trace_summary.h); null without a trace.
std::string trace_json(Catalogue& catalogue, const std::string& run);

// [{"key", "values": [one per run]}]: settings in which the runs differ.
std::string differences_json(Catalogue& catalogue, const std::vector<std::string>& runs);

// The MIME type of a run's file that the page may show; empty for all other files.
std::string type_of_file(const std::string& name);

// Metrics in Prometheus's text format; docs/observing.md lists the names.
std::string prometheus_text(Catalogue& catalogue);

}  // namespace artel::dashboard
