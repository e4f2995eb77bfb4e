// Follows metrics.jsonl of a run, which may be written concurrently. Reads the lines added since
// the last call, with memory that does not grow with the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "artel/observe/reduced_series.h"

namespace artel::observe {

class MetricsTail {
 public:
  explicit MetricsTail(std::filesystem::path folder);

  // Returns true if the file has new lines. Rereads a file that was replaced. Skips broken lines;
  // does not throw.
  bool read();

  struct Event {
    int64_t step = 0;
    double seconds = 0;
    std::string kind, text;
  };
  // Series by name, such as "train/loss" and "seconds".
  const std::map<std::string, ReducedSeries, std::less<>>& series() const { return series_; }
  const std::vector<Event>& events() const { return events_; }  // the first thousand

 private:
  void take(std::string_view line);
  bool take_numbers(std::string_view line);
  void take_event(std::string_view line);
  ReducedSeries& series_called(std::string_view name, size_t place);

  std::filesystem::path path_;
  uint64_t inode_ = 0, offset_ = 0;
  std::string rest_;  // incomplete last line
  std::map<std::string, ReducedSeries, std::less<>> series_;
  // Lines usually have the same names in the same order.
  std::vector<std::map<std::string, ReducedSeries, std::less<>>::iterator> expected_;
  std::vector<std::pair<std::string_view, double>> numbers_;
  std::vector<Event> events_;
};

}  // namespace artel::observe
