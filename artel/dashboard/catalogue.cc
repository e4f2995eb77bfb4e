#include "artel/dashboard/catalogue.h"

#include <sys/stat.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/run/config/config.h"
#include "artel/run/folder/run_folder.h"

namespace artel::dashboard {
namespace {

namespace fs = std::filesystem;

constexpr double kFolderInterval = 1, kRunningInterval = 1;  // seconds between two reads
constexpr size_t kMostWithMetrics = 64;                      // runs whose curves are cached

// A signature of a run's files that changes with the run.
std::string signature_of(const fs::path& run) {
  std::string text;
  for (const char* name : {"metrics.jsonl", "summary.json", "failure.txt", "lock", "live.json"}) {
    struct stat status {};
    if (::stat((run / name).c_str(), &status) == 0)
      text +=
          fmt::format("{}.{}.{} ", status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size);
    else
      text += "- ";
  }
  return text;
}

double begun_at(const fs::path& run) {
  struct stat status {};
  if (::stat((run / "config.toml").c_str(), &status) != 0) return 0;
  return static_cast<double>(status.st_mtim.tv_sec);
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(path, error), outer = fs::canonical(folder, error);
  if (error) return false;
  return std::mismatch(outer.begin(), outer.end(), whole.begin(), whole.end()).first == outer.end();
}

}  // namespace

Catalogue::Catalogue(fs::path folder) : folder_(std::move(folder)) {
  require(fs::is_directory(folder_), ErrorKind::not_found,
          "[{}] is not a folder of runs; `artel train` makes one", folder_.string());
}

std::string Catalogue::name_of(const fs::path& path) const {
  const std::string name = path.lexically_relative(folder_).string();
  if (name != ".") return name;
  return fs::absolute(folder_).lexically_normal().filename().string();
}

void Catalogue::refresh() {
  const Clock::time_point now = Clock::now();
  if (refreshed_ != Clock::time_point{} && seconds_between(refreshed_, now) < kFolderInterval)
    return;
  refreshed_ = now;
  const std::vector<fs::path> paths = run_folders(folder_);
  std::erase_if(entries_, [&](const auto& item) {
    return std::ranges::find(paths, item.second.path) == paths.end();
  });
  for (const fs::path& path : paths) look_at(path, now);
}

void Catalogue::look_at(const fs::path& path, Clock::time_point now) {
  if (!is_inside(path, folder_)) return;
  Entry& entry = entries_[name_of(path)];
  // A run that ends releases its lock without touching a file.
  const bool due = entry.run.overview.status == RunStatus::running &&
                   seconds_between(entry.looked_at, now) >= kRunningInterval;
  std::string signature = signature_of(path);
  if (!due && signature == entry.signature) return;
  try {
    entry.run.overview = overview(path);
  } catch (const Error&) {
    entries_.erase(name_of(path));  // the run is being removed
    return;
  }
  entry.path = path;
  entry.run.name = name_of(path);
  entry.run.begun = begun_at(path);
  entry.run.version = ++version_;
  entry.signature = std::move(signature);
  entry.looked_at = now;
}

std::vector<Catalogue::Run> Catalogue::runs() {
  const MutexLock lock(mutex_);
  refresh();
  std::vector<Run> all;
  for (const auto& [name, entry] : entries_) all.push_back(entry.run);
  return all;
}

Catalogue::Entry& Catalogue::entry(const std::string& name) {
  refresh();
  const auto found = entries_.find(name);
  require(found != entries_.end(), ErrorKind::not_found, "no such run");
  return found->second;
}

Catalogue::Run Catalogue::run(const std::string& name) {
  const MutexLock lock(mutex_);
  return entry(name).run;
}

fs::path Catalogue::path(const std::string& name) {
  const MutexLock lock(mutex_);
  return entry(name).path;
}

LiveView Catalogue::live(const std::string& name) { return live_view(path(name)); }

std::map<std::string, std::string> Catalogue::settings(const std::string& name) {
  const MutexLock lock(mutex_);
  Entry& found = entry(name);
  const fs::path config = RunFolder(found.path).config();
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(config, error);
  if (error || time == found.config_time) return found.settings;
  found.config_time = time;
  found.settings.clear();
  try {
    for (const KeyDescription& key : config_keys(read_config(config)))
      found.settings[key.name] = key.default_value;
  } catch (const Error&) {
    // of another version
  }
  return found.settings;
}

void Catalogue::with_metrics(const std::string& name,
                             const std::function<void(const observe::MetricsTail&)>& use) {
  const MutexLock lock(mutex_);
  Entry& found = entry(name);
  if (!found.metrics) found.metrics = std::make_unique<observe::MetricsTail>(found.path);
  found.metrics_used = ++uses_;
  found.metrics->read();
  use(*found.metrics);
  forget_oldest_metrics();
}

void Catalogue::forget_oldest_metrics() {
  std::vector<Entry*> loaded;
  for (auto& [name, entry] : entries_)
    if (entry.metrics) loaded.push_back(&entry);
  if (loaded.size() <= kMostWithMetrics) return;
  (*std::ranges::min_element(loaded, {}, &Entry::metrics_used))->metrics.reset();
}

std::optional<std::string> Catalogue::file(const std::string& name, const std::string& file,
                                           uint64_t most) {
  const fs::path run = path(name), whole = run / file;
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(whole, error)) || !is_inside(whole, run) ||
      fs::file_size(whole, error) > most || error)
    return {};
  return read_file(whole, most);
}

void Catalogue::write_notes(const std::string& name, const std::string& text) {
  write_file_atomically(path(name) / "notes.txt", text);
}

}  // namespace artel::dashboard
