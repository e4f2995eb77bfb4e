// Follows metrics.jsonl of a run, which may be written at the same time: reads what has been added
// since the last time, in memory that does not grow with the run.
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

  // Returns whether there was anything new. A file that was begun anew is read anew. Lines that
  // are broken are left out; nothing is thrown.
  bool read();

  struct Event {
    int64_t step = 0;
    double seconds = 0;
    std::string kind, text;
  };
  // By name, such as "train/loss" and "seconds".
  const std::map<std::string, ReducedSeries, std::less<>>& series() const { return series_; }
  const std::vector<Event>& events() const { return events_; }  // the first thousand

 private:
  void take(std::string_view line);
  bool take_numbers(std::string_view line);
  void take_event(std::string_view line);
  ReducedSeries& series_called(std::string_view name, size_t place);

  std::filesystem::path path_;
  uint64_t inode_ = 0, offset_ = 0;
  std::string rest_;  // of a line whose end has not been written yet
  std::map<std::string, ReducedSeries, std::less<>> series_;
  // Lines have the same names in the same order, mostly.
  std::vector<std::map<std::string, ReducedSeries, std::less<>>::iterator> expected_;
  std::vector<std::pair<std::string_view, double>> numbers_;
  std::vector<Event> events_;
};

}  // namespace artel::observe
