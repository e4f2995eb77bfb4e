#include "artel/run/report/live_view.h"

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/run/folder/run_folder.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 16 << 20;
constexpr double kFresh = 10;  // seconds

double seconds_since_written(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  if (error) return 1e18;
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count();
}

}  // namespace

LiveView live_view(const fs::path& path) {
  const RunFolder folder(path);
  const RunOverview run = overview(path);
  LiveView view = {.status = run.status, .remark = run.remark, .run = {}};
  if (!fs::is_regular_file(folder.live())) return view;
  view.run = observe::live_from_json(read_file(folder.live(), kMostBytes), folder.live().string());
  // The lock of a process on another machine is invisible, but its files are not.
  if (view.status == RunStatus::dead && view.run->host != host_name() &&
      seconds_since_written(folder.live()) < kFresh) {
    view.status = RunStatus::running;
    view.remark = fmt::format("process {} on host {}", view.run->process, view.run->host);
  }
  return view;
}

std::string ending_of(const LiveView& view, const fs::path& run) {
  switch (view.status) {
    case RunStatus::running:
      return "";
    case RunStatus::finished:
      return fmt::format("{} has finished ({})", run.string(), view.remark);
    case RunStatus::stopped:
      return fmt::format("{} was stopped ({}); `artel train ... --resume` continues it",
                         run.string(), view.remark);
    case RunStatus::failed:
      return fmt::format("{} has failed: {}", run.string(), view.remark);
    case RunStatus::dead:
      return fmt::format("{} is dead: {}", run.string(), view.remark);
  }
  return "";
}

fs::path running_run(const fs::path& folder) {
  fs::path newest;
  double since = 1e18;
  for (const RunOverview& run : overviews(folder)) {
    if (run.status != RunStatus::running) continue;
    const double age = seconds_since_written(RunFolder(run.path).config());
    if (!newest.empty() && age >= since) continue;
    newest = run.path;
    since = age;
  }
  require(!newest.empty(), ErrorKind::not_found,
          "[{}] no training is in progress there; `artel runs` lists finished runs",
          folder.string());
  return newest;
}

std::string to_json(const LiveView& view, const fs::path& run) {
  nlohmann::ordered_json json = {
      {"run", run.string()}, {"status", to_string(view.status)}, {"remark", view.remark}};
  if (view.run) json["live"] = ordered_json_or_null(observe::to_json(*view.run));
  // Error messages and file names may contain invalid UTF-8.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace artel
