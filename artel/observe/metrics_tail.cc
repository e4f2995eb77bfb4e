#include "artel/observe/metrics_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::observe {
namespace {

constexpr size_t kChunk = 1 << 20, kLongestLine = 1 << 20, kMostEvents = 1000, kMostNames = 1000;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MetricsTail::MetricsTail(std::filesystem::path folder) : path_(folder / "metrics.jsonl") {}

bool MetricsTail::read() {
  const Descriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (status.st_ino != inode_ || static_cast<uint64_t>(status.st_size) < offset_) {
    *this = MetricsTail(path_.parent_path());
    inode_ = status.st_ino;
  }
  const uint64_t before = offset_;
  std::string chunk(kChunk, '\0');
  while (true) {
    const ssize_t size = ::pread(file.fd, chunk.data(), chunk.size(), static_cast<off_t>(offset_));
    if (size <= 0) break;
    offset_ += static_cast<uint64_t>(size);
    std::string_view text(chunk.data(), static_cast<size_t>(size));
    for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      if (rest_.empty()) {
        take(text.substr(0, end));
      } else {
        rest_.append(text.substr(0, end));
        take(rest_);
        rest_.clear();
      }
    }
    if (rest_.size() + text.size() <= kLongestLine) rest_.append(text);
  }
  return offset_ != before;
}

void MetricsTail::take(std::string_view line) {
  if (!take_numbers(line) && line.find("\"event\"") != line.npos) take_event(line);
}

// Parses {"step":7,"seconds":1.5,"train/loss":0.3}, the line of a step, much faster than a general
// JSON parser.
bool MetricsTail::take_numbers(std::string_view line) {
  numbers_.clear();
  const char *at = line.data(), *const end = at + line.size();
  if (at == end || *at++ != '{') return false;
  while (true) {
    if (at == end || *at++ != '"') return false;
    const char* const name = at;
    while (at != end && *at != '"' && *at != '\\') ++at;
    if (end - at < 2 || at[0] != '"' || at[1] != ':') return false;
    const std::string_view key(name, static_cast<size_t>(at - name));
    at += 2;
    double value = 0;
    if (end - at >= 4 && std::string_view(at, 4) == "null") {
      at += 4;
    } else {
      const auto [after, error] = std::from_chars(at, end, value);
      if (error != std::errc()) return false;
      at = after;
      numbers_.emplace_back(key, value);
    }
    if (at == end) return false;
    if (*at == '}') break;
    if (*at++ != ',') return false;
  }
  constexpr double kMostSteps = 9e18;
  if (numbers_.empty() || numbers_[0].first != "step" || !(numbers_[0].second >= 0) ||
      numbers_[0].second > kMostSteps)
    return false;
  const auto step = static_cast<int64_t>(numbers_[0].second);
  for (size_t i = 1; i < numbers_.size(); ++i)
    series_called(numbers_[i].first, i).add(step, numbers_[i].second);
  return true;
}

ReducedSeries& MetricsTail::series_called(std::string_view name, size_t place) {
  if (place < expected_.size() && expected_[place] != series_.end() &&
      expected_[place]->first == name)
    return expected_[place]->second;
  auto found = series_.find(name);
  if (found == series_.end()) {
    // Limits the memory for a broken file.
    if (series_.size() >= kMostNames) return series_.begin()->second;
    found = series_.emplace(std::string(name), ReducedSeries()).first;
  }
  if (place < kMostNames) {
    if (expected_.size() <= place) expected_.resize(place + 1, series_.end());
    expected_[place] = found;
  }
  return found->second;
}

void MetricsTail::take_event(std::string_view line) {
  const nlohmann::json json = json_or_null(line);
  if (!json.is_object() || events_.size() >= kMostEvents) return;
  Event event;
  for (const auto& [name, value] : json.items()) {
    if (name == "step") event.step = whole_number(value).value_or(event.step);
    if (name == "seconds" && value.is_number()) event.seconds = value.get<double>();
    if (name == "event" && value.is_string()) event.kind = value.get<std::string>();
    if (name == "text" && value.is_string()) event.text = value.get<std::string>();
  }
  events_.push_back(std::move(event));
}

}  // namespace artel::observe
