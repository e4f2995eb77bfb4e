// The numbers of a run, kept in its folder: metrics.jsonl for scripts, event files for TensorBoard.
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
  // Creates the folder if needed. A run resumed after step `resumed_step` drops the lines of later
  // steps, which it is about to write again, and continues counting seconds; 0 starts afresh.
  explicit MetricsWriter(const std::filesystem::path& folder, int64_t resumed_step = 0);

  // Appends {"step": 7, "seconds": 1.5, "loss": 0.3, ...} and the same to the event file. Values
  // that are not finite are null. Both files are flushed about once a second. Names follow
  // TensorBoard's convention: "train/loss", "test/accuracy". Throws an Error of kind io if that
  // fails; nothing is lost then, and a later flush writes it.
  void write(int64_t step, const Scalars& scalars);
  // Appends {"step": 7, "seconds": 1.5, "event": "loss", "text": "..."}.
  void write_event(int64_t step, const std::string& kind, const std::string& text);
  // Where scalars go, too: what only viewers want is written there directly.
  EventFileWriter& events() { return events_; }
  void flush();
  // After this, a crash of the machine loses no line of metrics.jsonl.
  void sync();

 private:
  void flush_now_and_then(Clock::time_point now);

  double seconds_before_;  // of the run that is resumed
  AppendedFile lines_;
  EventFileWriter events_;
  Clock::time_point begin_;
  Clock::time_point flushed_;
};

// The last step of which metrics.jsonl of a run folder has a complete line; 0: none.
int64_t last_step_written(const std::filesystem::path& folder);

// Reads metrics.jsonl of a run folder: (step, value) pairs by name. Throws an Error that names the
// line if the file is broken; a last line that is broken or has no end, as a crash leaves it, is
// ignored.
std::map<std::string, std::vector<std::pair<int64_t, double>>> read_metrics(
    const std::filesystem::path& folder);

}  // namespace artel::observe
