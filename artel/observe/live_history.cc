#include "artel/observe/live_history.h"

#include <algorithm>
#include <cmath>

#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"

namespace artel::observe {
namespace {

constexpr double kShortest = 10;  // seconds between two lines
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// The complete lines.
std::vector<std::string> lines_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return {};
  std::vector<std::string> lines = split(read_file(path, kMostBytes), '\n');
  if (!lines.empty()) lines.pop_back();
  return lines;
}

// Median distance between lines; a run may have been stopped for a while.
double interval_of(const std::vector<std::string>& lines) {
  std::vector<double> gaps;
  std::optional<double> before;
  for (const std::string& line : lines) {
    const auto json = json_or_null(line);
    if (!json.is_object() || !json.contains("at") || !json["at"].is_number()) continue;
    const double at = json["at"];
    if (before) gaps.push_back(at - *before);
    before = at;
  }
  if (gaps.empty()) return kShortest;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return kShortest * std::exp2(std::round(std::log2(std::max(1.0, *middle / kShortest))));
}

// Rounds a share to four digits.
double rounded(std::optional<double> value) { return std::round(value.value_or(0) * 1e4) / 1e4; }

}  // namespace

LiveHistory::LiveHistory(std::filesystem::path path, size_t most)
    : path_(std::move(path)), most_(most), file_(std::in_place, path_) {
  const std::vector<std::string> lines = lines_of(path_);
  lines_ = lines.size();
  interval_ = interval_of(lines);
}

void LiveHistory::add(const LiveRun& run) {
  nlohmann::ordered_json line = {{"at", std::round(run.at * 10) / 10}, {"step", run.step}};
  for (const LiveWorker& worker : run.workers) {
    if (!worker.computing) continue;
    line["workers"][worker.name] = {rounded(worker.computing),
                                    rounded(worker.data),
                                    rounded(worker.workers),
                                    rounded(worker.wire),
                                    rounded(worker.samples_per_second),
                                    rounded(worker.wire_wait)};
  }
  if (!line.contains("workers")) return;  // no shares are known yet
  next_ = run.at + interval_;
  if (!file_) file_.emplace(path_);
  file_->append(line.dump() + '\n');
  file_->flush();
  if (++lines_ >= most_) thin_out();
}

void LiveHistory::thin_out() {
  const std::vector<std::string> lines = lines_of(path_);
  std::string kept;
  for (size_t i = 0; i < lines.size(); i += 2) kept.append(lines[i]) += '\n';
  file_.reset();
  write_file_atomically(path_, kept);
  lines_ = (lines.size() + 1) / 2;
  interval_ *= 2;
}

}  // namespace artel::observe
