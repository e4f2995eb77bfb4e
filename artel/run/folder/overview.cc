#include "artel/run/folder/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/file_lock.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/run/config/config.h"
#include "artel/run/folder/run_elsewhere.h"
#include "artel/run/folder/run_folder.h"

namespace artel {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array<std::string_view, 5> kStatusWords = {"running", "finished", "stopped",
                                                          "failed", "dead"};

// The last bytes of a file, without a line whose beginning is cut off.
std::string tail_of(const fs::path& path, uint64_t most) try {
  std::string text = read_end(path, most);
  if (text.size() == most) text.erase(0, std::min(text.size(), text.find('\n') + 1));
  return text;
} catch (const Error&) {
  return "";  // missing, or not a regular file
}

std::optional<double> number_of(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return {};
  return found->get<double>();
}

int64_t step_of(const Json& object) {
  const auto found = object.find("step");
  return found == object.end() ? 0 : whole_number(*found).value_or(0);
}

// "test/accuracy" is called "test accuracy".
std::string spoken(std::string name) {
  std::replace(name.begin(), name.end(), '/', ' ');
  return name;
}

// From the newest lines of metrics.jsonl.
void read_progress(const fs::path& folder, RunOverview& run) {
  constexpr uint64_t kMostBytes = 1 << 20;
  const std::string text = tail_of(folder / "metrics.jsonl", kMostBytes);
  const std::vector<std::string> lines = split(text, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const Json values = json_or_null(*line);
    if (!values.is_object()) continue;  // the last one may be incomplete
    if (run.step == 0) {
      run.step = step_of(values);
      run.seconds = number_of(values, "seconds").value_or(0);
    }
    if (!run.loss) run.loss = number_of(values, "train/loss");
    for (const char* name :
         {"test/accuracy", "validation/accuracy", "test/loss", "validation/loss"}) {
      if (run.metric) break;
      run.metric = number_of(values, name);
      if (run.metric) run.metric_name = spoken(name);
    }
    if (run.loss && run.metric) return;
  }
}

// Returns how the run ended, if that is known of its last step.
std::optional<std::string> read_summary(const RunFolder& folder, RunOverview& run) {
  if (!fs::is_regular_file(folder.summary())) return {};
  const Json summary = json_or_null(tail_of(folder.summary(), 1 << 20));
  if (!summary.is_object()) return {};
  const int64_t step = step_of(summary);
  if (step < run.step) return {};  // it was resumed and has continued since
  run.step = step;
  for (const char* part : {"test", "validation"}) {
    const std::optional<double> accuracy = number_of(summary, std::string(part) + "_accuracy");
    if (!accuracy) continue;
    run.metric = accuracy;
    run.metric_name = std::string(part) + " accuracy";
    break;
  }
  const auto found = summary.find("stopped_by");
  run.diverged = summary.contains("diverged");
  return found != summary.end() && found->is_string() ? found->get<std::string>() : "";
}

// The parts of a text between commas that are outside of quotes and brackets.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  bool quoted = false;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c != ',' || quoted || depth > 0) continue;
    parts.emplace_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

// "a = 1" and "b = [2, 3]" of an inline table { a = 1, b = [2, 3] }; none of anything else.
std::vector<std::string> entries_of(std::string_view text) {
  if (!text.starts_with("{ ") || !text.ends_with(" }")) return {};
  std::vector<std::string> entries = parts_of(text.substr(2, text.size() - 4));
  std::erase_if(entries, [](const std::string& entry) { return entry.find(" = ") == entry.npos; });
  return entries;
}

uint64_t bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code ignored;  // files come and go while a run is being trained
  for (auto file = fs::recursive_directory_iterator(folder, ignored);
       file != fs::recursive_directory_iterator(); file.increment(ignored)) {
    if (!file->is_regular_file(ignored) || file->is_symlink(ignored)) continue;
    const uint64_t size = file->file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

}  // namespace

std::string_view to_string(RunStatus status) { return kStatusWords[static_cast<size_t>(status)]; }

RunStatus run_status(std::string_view word) {
  const auto found = std::find(kStatusWords.begin(), kStatusWords.end(), word);
  require(found != kStatusWords.end(), ErrorKind::invalid_argument, "status: got '{}', expected {}",
          word, fmt::join(kStatusWords, ", "));
  return static_cast<RunStatus>(found - kStatusWords.begin());
}

RunOverview overview(const fs::path& path) {
  const RunFolder folder(path);
  require(folder.used(), ErrorKind::not_found, "[{}] is not the folder of a run{}", path.string(),
          hint_elsewhere(path));
  RunOverview run = {.path = path};
  read_progress(path, run);
  const std::optional<std::string> ended = read_summary(folder, run);
  run.bytes = bytes_below(path);
  if (const auto holder = FileLock::holder_of(folder.lock())) {
    run.status = RunStatus::running;
    run.remark = *holder;
  } else if (fs::is_regular_file(folder.failure())) {
    run.status = RunStatus::failed;
    run.remark = std::string(trim(tail_of(folder.failure(), 1 << 16)));
  } else if (!ended) {
    run.remark = "its process ended without a word";
  } else {
    const bool by_somebody = *ended == "request" || *ended == "leave";
    run.status = by_somebody ? RunStatus::stopped : RunStatus::finished;
    run.remark = by_somebody ? "interrupted" : *ended;
    if (run.diverged) run.remark += ", diverged";
  }
  return run;
}

std::vector<fs::path> run_folders(const fs::path& folder) {
  require(fs::is_directory(folder), ErrorKind::not_found, "[{}] is not a folder", folder.string());
  std::vector<fs::path> runs;
  const auto add = [&](const fs::path& path) {
    const bool is_run = RunFolder(path).used();
    if (is_run) runs.push_back(path);
    return is_run;
  };
  if (add(folder)) return runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory() || add(entry.path())) continue;
    for (const auto& below : fs::directory_iterator(entry.path()))
      if (below.is_directory()) add(below.path());
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

std::vector<RunOverview> overviews(const fs::path& folder) {
  std::vector<RunOverview> runs;
  for (const fs::path& path : run_folders(folder)) runs.push_back(overview(path));
  return runs;
}

namespace {

using List = std::vector<std::string>;

// The longest common subsequence.
List common_entries(const List& a, const List& b) {
  std::vector<std::vector<size_t>> lengths(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      lengths[i][j] =
          a[i] == b[j] ? lengths[i + 1][j + 1] + 1 : std::max(lengths[i + 1][j], lengths[i][j + 1]);
  List common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      common.push_back(a[i]);
      ++i, ++j;
    } else {
      lengths[i + 1][j] >= lengths[i][j + 1] ? ++i : ++j;
    }
  }
  return common;
}

// The entries of a list that are not in `common`, with "..." for the others.
List without(const List& list, const List& common) {
  List rest;
  size_t next = 0;
  for (const std::string& entry : list) {
    const bool shared = next < common.size() && entry == common[next];
    if (shared) ++next;
    if (!shared || rest.empty() || rest.back() != "...") rest.push_back(shared ? "..." : entry);
  }
  return rest;
}

// If one of the lists is long, reduces all lists to their differences: `..., "dense 64", ...`. Cuts
// the end of lists that are still long.
void keep_differences(std::vector<std::string>& values) {
  constexpr size_t kLongValue = 60, kLongestValue = 80;
  const auto is_list = [](const std::string& value) {
    return value.starts_with('[') && value.ends_with(']');
  };
  if (!std::ranges::all_of(values, is_list) ||
      std::ranges::none_of(values, [](const auto& value) { return value.size() > kLongValue; }))
    return;
  std::vector<List> lists;
  for (const std::string& value : values)
    lists.push_back(parts_of(std::string_view(value).substr(1, value.size() - 2)));
  List common = lists[0];
  for (const List& list : lists) common = common_entries(common, list);
  for (size_t i = 0; i < lists.size(); ++i) {
    values[i] = join(without(lists[i], common), ", ");
    if (values[i].size() > kLongestValue) values[i] = values[i].substr(0, kLongestValue) + " ...";
  }
}

}  // namespace

std::vector<ChangedKey> changed_keys(const std::vector<fs::path>& runs) {
  std::vector<ChangedKey> keys;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto set = [&](const std::string& name, const std::string& value) {
      auto found = std::find_if(keys.begin(), keys.end(),
                                [&](const ChangedKey& other) { return other.name == name; });
      if (found == keys.end()) found = keys.insert(keys.end(), {name, {}});
      found->values.resize(i);
      found->values.push_back(value);
    };
    for (const KeyDescription& key : config_keys(read_config(RunFolder(runs[i]).config()))) {
      const std::vector<std::string> entries = entries_of(key.default_value);
      if (entries.empty()) set(key.name, key.default_value);
      for (const std::string& entry : entries) {
        const size_t equals = entry.find(" = ");
        set(key.name + "." + entry.substr(0, equals), entry.substr(equals + 3));
      }
    }
  }
  std::erase_if(keys, [&](ChangedKey& key) {
    key.values.resize(runs.size());
    return std::ranges::all_of(key.values, [&](const auto& v) { return v == key.values[0]; });
  });
  for (ChangedKey& key : keys) keep_differences(key.values);
  return keys;
}

}  // namespace artel
