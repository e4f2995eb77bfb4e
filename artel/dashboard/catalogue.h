// The runs of a folder, as the dashboard knows them: what each is, and its curves. Looks at the
// disk when it is asked, and only at what has changed. Thread safe.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artel/base/time.h"
#include "artel/observe/metrics_tail.h"
#include "artel/run/live_view.h"
#include "artel/run/overview.h"

namespace artel::dashboard {

class Catalogue {
 public:
  // Of all runs in the folder, up to two levels below it, or of the one that it is. Throws an Error
  // of kind not_found if there is no such folder.
  explicit Catalogue(std::filesystem::path folder);

  struct Run {
    std::string name;  // its path below the folder
    RunOverview overview;
    double begun = 0;      // seconds since 1970
    uint64_t version = 0;  // grows when something has changed
  };
  std::vector<Run> runs();

  // Of all functions below: `name` is one of those that `runs` gives; others throw an Error of kind
  // not_found. So no name leads out of the folder.
  Run run(const std::string& name);
  LiveView live(const std::string& name);
  std::filesystem::path path(const std::string& name);

  // The settings of the run by the names of their keys, as TOML; none for a run of another version.
  std::map<std::string, std::string> settings(const std::string& name);

  // Calls use(tail) with the metrics of the run as they are now.
  void with_metrics(const std::string& name,
                    const std::function<void(const observe::MetricsTail&)>& use);

  // The content of a file of the run; nothing if there is none, if it is longer than `most`, or if
  // it is not a plain file inside the run's folder.
  std::optional<std::string> file(const std::string& name, const std::string& file,
                                  uint64_t most = 16 << 20);
  // Replaces the notes of the run, notes.txt.
  void write_notes(const std::string& name, const std::string& text);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  struct Entry {
    Run run;
    std::filesystem::path path;
    std::string signature;  // of its files, when they were last read
    Clock::time_point looked_at{};
    std::unique_ptr<observe::MetricsTail> metrics;
    uint64_t metrics_used = 0;
    std::filesystem::file_time_type config_time{};  // when `settings` were read
    std::map<std::string, std::string> settings;
  };

  void refresh();
  void look_at(const std::filesystem::path& path, Clock::time_point now);
  Entry& entry(const std::string& name);
  std::string name_of(const std::filesystem::path& path) const;
  void forget_oldest_metrics();

  const std::filesystem::path folder_;
  std::mutex mutex_;
  Clock::time_point refreshed_{};
  std::map<std::string, Entry> entries_;
  uint64_t version_ = 0, uses_ = 0;
};

}  // namespace artel::dashboard
