// The numbers of a run, kept in its folder: metrics.jsonl for scripts, event files for TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "artel/base/time.h"
#include "artel/observe/event_file.h"

namespace artel::observe {

class MetricsWriter {
 public:
  // Creates the folder if needed. A run that is resumed after step `resumed_step` drops the lines
  // of later steps, which it is about to write again, and its seconds go on; 0 starts afresh.
  explicit MetricsWriter(const std::filesystem::path& folder, int64_t resumed_step = 0);

  // Appends {"step": 7, "seconds": 1.5, "loss": 0.3, ...} and the same to the event file. Values
  // that are not finite are null. Both files are flushed at most once a second, so a crash loses
  // little. Names follow TensorBoard's habit: "train/loss", "test/accuracy".
  void write(int64_t step, const Scalars& scalars);
  void flush();

 private:
  std::filesystem::path path_;
  double seconds_before_;  // of the run that is resumed
  std::ofstream lines_;
  EventFileWriter events_;
  Clock::time_point begin_;
  Clock::time_point flushed_;
};

// Reads metrics.jsonl of a run folder: (step, value) pairs by name. Throws an Error that names the
// line if the file is broken; a last line without its end is ignored.
std::map<std::string, std::vector<std::pair<int64_t, double>>> read_metrics(
    const std::filesystem::path& folder);

}  // namespace artel::observe
