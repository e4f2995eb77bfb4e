// The metrics of a run in its folder: metrics.jsonl for scripts, event files for TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "artel/base/appended_file.h"
#include "artel/base/time.h"
#include "artel/observe/event_file.h"

namespace artel::observe {

class MetricsWriter {
 public:
  // Creates the folder if needed. For a run resumed after step `resumed_step`, drops the lines of
  // later steps, which will be written again, and continues counting seconds. 0 starts a new file.
  explicit MetricsWriter(const std::filesystem::path& folder, int64_t resumed_step = 0);

  // Appends {"step": 7, "seconds": 1.5, "loss": 0.3, ...} and the same values to the event file.
  // Values that are not finite become null. Flushes both files about once a second. Names follow
  // TensorBoard's convention: "train/loss", "test/accuracy". Throws an Error of kind io if a flush
  // fails; the data is kept, and a later flush retries.
  void write(int64_t step, const Scalars& scalars);
  // Appends {"step": 7, "seconds": 1.5, "event": "loss", "text": "..."}.
  void write_event(int64_t step, const std::string& kind, const std::string& text);
  // The event file, for data that only viewers need.
  EventFileWriter& events() { return events_; }
  void flush();
  // Makes all lines of metrics.jsonl survive a crash of the machine.
  void sync();

 private:
  void flush_now_and_then(Clock::time_point now);

  double seconds_before_;  // training time before the resume
  AppendedFile lines_;
  EventFileWriter events_;
  Clock::time_point begin_;
  Clock::time_point flushed_;
};

// The last step with a complete line in metrics.jsonl of a run folder; 0 if none.
int64_t last_step_written(const std::filesystem::path& folder);

// Reads metrics.jsonl of a run folder: (step, value) pairs by name. Throws an Error that names the
// line if the file is broken. Ignores an incomplete last line, as left by a crash.
std::map<std::string, std::vector<std::pair<int64_t, double>>> read_metrics(
    const std::filesystem::path& folder);

}  // namespace artel::observe
