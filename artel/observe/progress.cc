#include "artel/observe/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/observe/terminal.h"

namespace artel::observe {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr size_t kRecent = 50;  // redraws over which the pace is averaged: five seconds
constexpr int kBarColumns = 24;

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
    all.push_back(fmt::format("{} samples/s", rate_text(pace.samples_per_second)));
    if (status.tokens > 0)
      all.back() = fmt::format(
          "{} tokens/s", rate_text(pace.samples_per_second * static_cast<double>(status.tokens)));
  }
  if (status.step < status.steps && (pace.samples_per_second > 0 || pace.seconds_left > 0))
    all.push_back(fmt::format("{} left", format_duration(pace.seconds_left)));
  if (const std::string text = forecast_text(pace.seconds_per_step, status.forecast_seconds);
      !text.empty())
    all.push_back(text);
  return all;
}

}  // namespace

std::string rate_text(double per_second) {
  if (per_second >= 100) return format_count(std::llround(per_second));
  return per_second >= 1 ? fmt::format("{:.1f}", per_second) : fmt::format("{:.3g}", per_second);
}

double seconds_left(const Remaining& remaining) {
  const double step =
      remaining.seconds_per_step > 0 ? remaining.seconds_per_step : remaining.forecast_seconds;
  if (step <= 0) return 0;
  return step * static_cast<double>(std::max<int64_t>(0, remaining.steps)) +
         remaining.seconds_of_epoch_end *
             static_cast<double>(std::max<int64_t>(0, remaining.epochs));
}

std::string forecast_text(double seconds_per_step, double forecast_seconds) {
  if (seconds_per_step <= 0 || forecast_seconds <= 0) return "";
  return fmt::format("{} a step (forecast {})", format_duration(seconds_per_step),
                     format_duration(forecast_seconds));
}

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
      terminal_(options_.terminal.value_or(is_terminal(options_.stream))),
      unicode_(speaks_unicode()) {}

Progress::~Progress() {
  if (live_) std::fputc('\n', options_.stream);
  std::fflush(options_.stream);
}

Pace Progress::pace() const {
  Pace pace;
  if (recent_.size() > 1) {
    const Sample& first = recent_.front();
    const Sample& last = recent_.back();
    const double between = last.seconds_between_epochs - first.seconds_between_epochs;
    const double seconds = seconds_between(first.at, last.at) - between;
    const auto steps = static_cast<double>(last.step - first.step);
    if (seconds > 0 && steps > 0) {
      pace.samples_per_second = static_cast<double>(last.samples - first.samples) / seconds;
      pace.seconds_per_step = seconds / steps;
    }
  }
  const auto ended = static_cast<double>(std::max<int64_t>(1, status_.ended_epochs));
  pace.seconds_left =
      observe::seconds_left({.steps = status_.steps - status_.step,
                             .epochs = status_.epochs - status_.epoch + 1,
                             .seconds_per_step = pace.seconds_per_step,
                             .forecast_seconds = status_.forecast_seconds,
                             .seconds_of_epoch_end = status_.seconds_between_epochs / ended});
  return pace;
}

void Progress::update(const Status& status) {
  const Clock::time_point now = options_.now();
  const bool last = status.step >= status.steps;
  if (recent_.empty() || last || seconds_between(recent_.back().at, now) >= kRedrawSeconds) {
    recent_.push_back({now, status.step, status.samples, status.seconds_between_epochs});
    if (recent_.size() > kRecent) recent_.pop_front();
  }
  const double interval = terminal_ ? kRedrawSeconds : options_.interval_seconds;
  if (last_written_ && !last && seconds_between(*last_written_, now) < interval) return;
  status_ = status;
  last_written_ = now;
  write(terminal_ ? live_line(status, pace(),
                              options_.width.value_or(terminal_width(options_.stream)), unicode_)
                  : plain_line(status, pace()));
}

// Writes the live line, or a separate line without a terminal.
void Progress::write(const std::string& line) {
  tell(options_.stream, terminal_ ? fmt::format("\r{}\x1b[K", line) : line + '\n');
  live_ = terminal_;
}

void Progress::work(std::string_view what, int64_t done, int64_t total) {
  if (is_due()) write(fmt::format("{}  {} of {}", what, format_count(done), format_count(total)));
}

void Progress::share(std::string_view what, double done) {
  if (is_due()) write(fmt::format("{}  {:.0f} %", what, 100 * done));
}

// True if work between steps is due to be shown.
bool Progress::is_due() {
  const Clock::time_point now = options_.now();
  if (!last_written_) last_written_ = now;  // short work needs no line
  const double interval = terminal_ ? kRedrawSeconds : options_.interval_seconds;
  if (seconds_between(*last_written_, now) < interval) return false;
  last_written_ = now;
  return true;
}

void Progress::note(std::string_view text) {
  clear();
  tell(options_.stream, fmt::format("{}\n", text));
}

void Progress::clear() {
  if (live_) tell(options_.stream, "\r\x1b[K");
  live_ = false;
}

}  // namespace artel::observe
