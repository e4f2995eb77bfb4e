// Requests for a trace of a running training: a file in the run folder, which worker 0 polls and
// answers with other files.
//
//   trace.request        {"id": "...", "steps": 20}
//   trace.answer         {"id": "...", "state": "recording"}, then "done", or "refused" and "text"
//   trace.json           the finished trace, for Perfetto
//   trace_summary.json   its summary, for the dashboard
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "artel/run/folder/run_folder.h"

namespace artel {

constexpr int64_t kMostTracedSteps = 10'000;

struct TraceRequest {
  std::string id;  // unique
  int64_t steps = 0;
};

struct TraceAnswer {
  std::string id;     // of the request
  std::string state;  // "recording", "done" or "refused"
  std::string text;   // reason of a refusal
};

std::string to_json(const TraceRequest& request);
std::string to_json(const TraceAnswer& answer);
// Empty if the file does not exist. Throw an Error of kind corrupt for an invalid file.
std::optional<TraceRequest> read_trace_request(const RunFolder& folder);
std::optional<TraceAnswer> read_trace_answer(const RunFolder& folder);

struct TraceWish {
  int64_t steps = 20;
  double timeout = 60;  // seconds without an answer or another step
};
// Requests a trace of a running training, waits for it, and returns the file. Throws an Error if
// the run does not exist, has ended, refuses, or does not answer.
std::filesystem::path trace_run(const std::filesystem::path& run, const TraceWish& wish);

}  // namespace artel
