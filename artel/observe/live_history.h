// The time shares of each worker over a whole run: workers.jsonl, one line every ten seconds.
//
// The file is bounded. When it has `most` lines, every second line is dropped and lines are added
// half as often. Lines are therefore evenly spaced, and a long run has at least `most` / 2 of them.
// A line takes about 40 bytes per worker.
#pragma once

#include <filesystem>
#include <optional>

#include "artel/base/appended_file.h"
#include "artel/observe/live.h"

namespace artel::observe {

class LiveHistory {
 public:
  static constexpr size_t kMost = 2000;  // lines

  // Continues an existing file.
  explicit LiveHistory(std::filesystem::path path, size_t most = kMost);

  // True if the next line is due.
  bool due(double at) const { return at >= next_; }
  // Adds {"at": seconds since 1970, "step": 7, "workers": {name: [computing, waiting for data,
  // waiting for workers, on the wire, samples per second, waiting for the wire]}}. Waiting for
  // workers includes waiting for the wire. Throws an Error of kind io; a later call retries.
  void add(const LiveRun& run);

 private:
  void thin_out();

  std::filesystem::path path_;
  size_t most_;
  std::optional<AppendedFile> file_;  // empty while the file is replaced
  size_t lines_ = 0;
  double interval_, next_ = 0;
};

}  // namespace artel::observe
