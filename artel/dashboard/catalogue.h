// The runs of a folder, with their state and curves. Reads the disk on request, and only files that
// have changed. Thread safe.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/base/time.h"
#include "artel/observe/metrics_tail.h"
#include "artel/run/folder/overview.h"
#include "artel/run/report/live_view.h"

namespace artel::dashboard {

class Catalogue {
 public:
  // Covers all runs up to two levels below the folder, or the folder itself if it is a run. Throws
  // an Error of kind not_found if the folder does not exist.
  explicit Catalogue(std::filesystem::path folder);

  struct Run {
    std::string name;  // path relative to the folder
    RunOverview overview;
    double begun = 0;      // seconds since 1970
    uint64_t version = 0;  // increases with each change
  };
  std::vector<Run> runs();

  // In all functions below, `name` must be a name returned by `runs`; others throw an Error of kind
  // not_found. No name can therefore lead out of the folder.
  Run run(const std::string& name);
  LiveView live(const std::string& name);
  std::filesystem::path path(const std::string& name);

  // The settings of the run: key to TOML value. Empty for a run of another version.
  std::map<std::string, std::string> settings(const std::string& name);

  // Calls use(tail) with the current metrics of the run.
  void with_metrics(const std::string& name,
                    const std::function<void(const observe::MetricsTail&)>& use);

  // The content of a file of the run. Empty if it is missing, longer than `most`, or not a regular
  // file inside the run folder.
  std::optional<std::string> file(const std::string& name, const std::string& file,
                                  uint64_t most = 16 << 20);
  // Replaces the notes of the run, notes.txt.
  void write_notes(const std::string& name, const std::string& text);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  struct Entry {
    Run run;
    std::filesystem::path path;
    std::string signature;  // of its files when last read
    Clock::time_point looked_at{};
    std::unique_ptr<observe::MetricsTail> metrics;
    uint64_t metrics_used = 0;
    std::filesystem::file_time_type config_time{};  // of the file from which `settings` were read
    std::map<std::string, std::string> settings;
  };

  void refresh() ARTEL_REQUIRES(mutex_);
  void look_at(const std::filesystem::path& path, Clock::time_point now) ARTEL_REQUIRES(mutex_);
  Entry& entry(const std::string& name) ARTEL_REQUIRES(mutex_);
  std::string name_of(const std::filesystem::path& path) const;
  void forget_oldest_metrics() ARTEL_REQUIRES(mutex_);

  const std::filesystem::path folder_;
  Mutex mutex_;
  Clock::time_point refreshed_ ARTEL_GUARDED_BY(mutex_){};
  std::map<std::string, Entry> entries_ ARTEL_GUARDED_BY(mutex_);
  uint64_t version_ ARTEL_GUARDED_BY(mutex_) = 0;
  uint64_t uses_ ARTEL_GUARDED_BY(mutex_) = 0;
};

}  // namespace artel::dashboard
