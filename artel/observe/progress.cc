#include "artel/observe/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "artel/base/text.h"

namespace artel::observe {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr size_t kRecent = 50;  // redraws that the pace is averaged over: five seconds
constexpr int kBarColumns = 24;

bool speaks_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

int terminal_width(std::FILE* stream) {
  winsize size{};
  return ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar(double share, bool unicode) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarColumns);
  std::string text;
  for (int i = 0; i < kBarColumns; ++i)
    text += i < filled ? (unicode ? "━" : "#") : (unicode ? "─" : "-");
  return text;
}

// The parts of a line, most important first.
std::vector<std::string> parts(const Status& status, const Pace& pace) {
  std::vector<std::string> all = {fmt::format("epoch {}/{}", status.epoch, status.epochs),
                                  fmt::format("step {}/{}", status.step, status.steps),
                                  fmt::format("loss {:.4f}", status.loss)};
  if (!status.metric_name.empty())
    all.push_back(fmt::format("{} {:.4f}", status.metric_name, status.metric));
  if (pace.samples_per_second > 0) {
    all.push_back(
        fmt::format("{} samples/s", pace.samples_per_second < 100
                                        ? fmt::format("{:.1f}", pace.samples_per_second)
                                        : format_count(std::llround(pace.samples_per_second))));
    if (status.step < status.steps)
      all.push_back(fmt::format("{} left", format_duration(pace.seconds_left)));
  }
  return all;
}

}  // namespace

std::string plain_line(const Status& status, const Pace& pace) {
  return join(parts(status, pace), "  ");
}

std::string live_line(const Status& status, const Pace& pace, int width, bool unicode) {
  const double share =
      status.steps > 0 ? static_cast<double>(status.step) / static_cast<double>(status.steps) : 0;
  std::string line;
  int columns = 0;
  const auto append = [&](const std::string& part, int part_columns) {
    const int gap = columns > 0 ? 2 : 0;
    if (columns + gap + part_columns > width) return false;
    line.append(gap, ' ').append(part);
    columns += gap + part_columns;
    return true;
  };
  bool room = true;
  for (const std::string& part : parts(status, pace)) {
    room = room && append(part, static_cast<int>(part.size()));
    if (part.starts_with("epoch")) room = room && append(bar(share, unicode), kBarColumns);
  }
  return line;
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      terminal_(options_.terminal.value_or(::isatty(::fileno(options_.stream)) == 1)),
      unicode_(speaks_unicode()) {}

Progress::~Progress() {
  if (live_) std::fputc('\n', options_.stream);
  std::fflush(options_.stream);
}

Pace Progress::pace() const {
  if (recent_.size() < 2) return {};
  const Sample& first = recent_.front();
  const Sample& last = recent_.back();
  const double seconds = seconds_between(first.at, last.at);
  const auto steps = static_cast<double>(last.step - first.step);
  if (seconds <= 0 || steps <= 0) return {};
  return {.samples_per_second = static_cast<double>(last.samples - first.samples) / seconds,
          .seconds_left = seconds / steps * static_cast<double>(status_.steps - status_.step)};
}

void Progress::update(const Status& status) {
  const Clock::time_point now = options_.now();
  const bool last = status.step >= status.steps;
  if (recent_.empty() || last || seconds_between(recent_.back().at, now) >= kRedrawSeconds) {
    recent_.push_back({now, status.step, status.samples});
    if (recent_.size() > kRecent) recent_.pop_front();
  }
  const double interval = terminal_ ? kRedrawSeconds : options_.interval_seconds;
  if (last_written_ && !last && seconds_between(*last_written_, now) < interval) return;
  status_ = status;
  last_written_ = now;
  if (terminal_) {
    const int width = options_.width.value_or(terminal_width(options_.stream));
    fmt::print(options_.stream, "\r{}\x1b[K", live_line(status, pace(), width, unicode_));
    live_ = true;
  } else {
    fmt::print(options_.stream, "{}\n", plain_line(status, pace()));
  }
  std::fflush(options_.stream);
}

void Progress::note(std::string_view text) {
  clear();
  fmt::print(options_.stream, "{}\n", text);
  std::fflush(options_.stream);
}

void Progress::clear() {
  if (live_) fmt::print(options_.stream, "\r\x1b[K");
  live_ = false;
}

}  // namespace artel::observe
