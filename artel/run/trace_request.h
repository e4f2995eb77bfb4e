// How somebody outside asks a running training for a trace of its next steps: by a file in the
// run's folder, which worker 0 looks for and answers with others.
//
//   trace.request        {"id": "...", "steps": 20}
//   trace.answer         {"id": "...", "state": "recording"}, then "done" or "refused" with a
//   "text" trace.json           for Perfetto, when it is done trace_summary.json   what it says,
//   for the dashboard
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "artel/run/run_folder.h"

namespace artel {

constexpr int64_t kMostTracedSteps = 10'000;

struct TraceRequest {
  std::string id;  // anything that is not used twice
  int64_t steps = 0;
};

struct TraceAnswer {
  std::string id;     // of the request
  std::string state;  // "recording", "done" or "refused"
  std::string text;   // why it was refused
};

std::string to_json(const TraceRequest& request);
std::string to_json(const TraceAnswer& answer);
// Nothing if there is none. Throw an Error of kind corrupt for something else in its place.
std::optional<TraceRequest> read_trace_request(const RunFolder& folder);
std::optional<TraceAnswer> read_trace_answer(const RunFolder& folder);

struct TraceWish {
  int64_t steps = 20;
  double timeout = 60;  // seconds without an answer or another step
};
// Has a running training trace its next steps, waits for it, and returns the file. Throws an Error
// that says why there will be none: there is no such run, it has ended, it refuses, or it does not
// answer.
std::filesystem::path trace_run(const std::filesystem::path& run, const TraceWish& wish);

}  // namespace artel
