// Where the time of each worker went over a whole run: workers.jsonl, a line every ten seconds.
//
// The file is bounded: when it has `most` lines, every second one is dropped, and from then on
// lines come half as often. So they are evenly spaced however long the run is, and there are never
// fewer than half of `most` of a long one. A line takes some 40 bytes for each worker.
#pragma once

#include <filesystem>
#include <optional>

#include "artel/base/appended_file.h"
#include "artel/observe/live.h"

namespace artel::observe {

class LiveHistory {
 public:
  static constexpr size_t kMost = 2000;  // lines

  // Goes on with the file if there is one.
  explicit LiveHistory(std::filesystem::path path, size_t most = kMost);

  // Whether it is time for a line, which depends on how many there are.
  bool due(double at) const { return at >= next_; }
  // Adds {"at": seconds since 1970, "step": 7, "workers": {name: [computing, waiting for data,
  // waiting for workers, on the wire, samples per second]}}. Throws an Error of kind io; a later
  // call tries again.
  void add(const LiveRun& run);

 private:
  void thin_out();

  std::filesystem::path path_;
  size_t most_;
  std::optional<AppendedFile> file_;  // absent while it is replaced
  size_t lines_ = 0;
  double interval_, next_ = 0;
};

}  // namespace artel::observe
