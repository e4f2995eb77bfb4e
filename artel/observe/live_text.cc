// Displays a LiveRun in a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/observe/live.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/observe/wrapped_text.h"

namespace artel::observe {
namespace {

constexpr const char* kUnknown = "-";
constexpr size_t kShownEvents = 3;

std::string share(const std::optional<double>& value) {
  return value ? fmt::format("{:.0f} %", 100 * *value) : kUnknown;
}

std::string rate(const std::optional<double>& value) {
  return value ? rate_text(*value) : kUnknown;
}

std::string bytes(const std::optional<double>& value) {
  return value ? format_bytes(*value) + "/s" : kUnknown;
}

struct Column {
  const char* header;
  int importance;  // less important columns are omitted first
  std::string (*cell)(const LiveWorker&);
};

const Column kColumns[] = {
    {"who", 9, [](const LiveWorker& w) { return w.name; }},
    {"mesh", 7, [](const LiveWorker& w) { return w.mesh; }},
    {"host", 4, [](const LiveWorker& w) { return w.host; }},
    {"doing", 7,
     [](const LiveWorker& w) {
       return w.silent_seconds >= 2 ? fmt::format("silent for {:.0f} s", w.silent_seconds)
                                    : w.doing;
     }},
    {"samples/s", 8, [](const LiveWorker& w) { return rate(w.samples_per_second); }},
    {"compute", 8, [](const LiveWorker& w) { return share(w.computing); }},
    {"data", 6, [](const LiveWorker& w) { return share(w.data); }},
    {"wait", 8,
     [](const LiveWorker& w) {
       return share(w.workers ? std::optional(*w.workers - w.wire_wait.value_or(0)) : w.workers);
     }},
    {"net", 7, [](const LiveWorker& w) { return share(w.wire_wait); }},
    {"wire", 6, [](const LiveWorker& w) { return share(w.wire); }},
    {"cores", 7,
     [](const LiveWorker& w) {
       return w.processor ? fmt::format("{:.1f}/{}", *w.processor, w.cores) : kUnknown;
     }},
    {"memory", 5,
     [](const LiveWorker& w) { return format_bytes(static_cast<double>(w.memory_bytes)); }},
    {"device", 7, [](const LiveWorker& w) { return share(w.device); }},
    {"on device", 5,
     [](const LiveWorker& w) {
       return w.device_memory_bytes > 0 ? format_bytes(static_cast<double>(w.device_memory_bytes))
                                        : kUnknown;
     }},
    {"copied", 3, [](const LiveWorker& w) { return bytes(w.device_copied_per_second); }},
    {"out", 3, [](const LiveWorker& w) { return bytes(w.sent_per_second); }},
    {"in", 3, [](const LiveWorker& w) { return bytes(w.received_per_second); }},
    {"lanes", 5,
     [](const LiveWorker& w) { return w.lanes > 0 ? std::to_string(w.lanes) : kUnknown; }},
    {"stale", 4,
     [](const LiveWorker& w) { return w.staleness ? fmt::format("{:.1f}", *w.staleness) : ""; }},
};

int columns_of(const std::string& text) {
  size_t widest = 0;
  for (const std::string& line : split(text, '\n')) widest = std::max(widest, line.size());
  return static_cast<int>(widest);
}

std::string table_of(const std::vector<LiveWorker>& workers, int least) {
  std::vector<const Column*> shown;
  for (const Column& column : kColumns) {
    const bool empty = std::ranges::all_of(workers, [&](const LiveWorker& w) {
      const std::string cell = column.cell(w);
      return cell.empty() || cell == kUnknown;
    });
    if (column.importance >= least && !empty) shown.push_back(&column);
  }
  std::vector<std::string> headers;
  for (const Column* column : shown) headers.emplace_back(column->header);
  Table table(headers);
  for (const LiveWorker& worker : workers) {
    std::vector<std::string> cells;
    for (const Column* column : shown) cells.push_back(column->cell(worker));
    table.add(cells);
  }
  return table.text();
}

// Truncates lines instead of wrapping them, because a view that is redrawn in place must know its
// height.
std::string fitted(const std::string& text, int width) {
  std::string lines;
  for (const std::string& line : split(trim(text), '\n'))
    lines += line.substr(0, static_cast<size_t>(std::max(width, 1))) + '\n';
  return lines;
}

std::string heading(const LiveRun& run, std::string_view name, std::string_view status) {
  std::vector<std::string> parts = {std::string(name), std::string(status),
                                    fmt::format("step {}", format_count(run.step))};
  if (run.steps > 0 && run.steps < INT64_MAX) parts.back() += " of " + format_count(run.steps);
  if (run.epochs > 0) parts.push_back(fmt::format("epoch {}/{}", run.epoch, run.epochs));
  if (run.loss) parts.push_back(fmt::format("loss {:.4f}", *run.loss));
  if (run.samples_per_second > 0) parts.push_back(rate_text(run.samples_per_second) + " samples/s");
  if (!run.exchange.empty()) parts.push_back(run.exchange);
  if (!run.device.empty()) parts.push_back(run.device);
  if (run.lanes > 0) parts.push_back(fmt::format("{} lanes", run.lanes));
  if (run.seconds_left > 0 && status == "running")
    parts.push_back(format_duration(run.seconds_left) + " left");
  if (const std::string text = forecast_text(run.seconds_per_step, run.forecast_seconds);
      !text.empty())
    parts.push_back(text);
  return join(parts, "  ");
}

}  // namespace

std::string live_text(const LiveRun& run, std::string_view name, std::string_view status,
                      const LiveText& look) {
  const auto paint = [&](const char* code, const std::string& text) {
    return look.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  };
  const Diagnosis diagnosis = diagnose(run);
  std::vector<LiveWorker> workers = run.workers;
  std::stable_partition(workers.begin(), workers.end(),
                        [&](const LiveWorker& worker) { return worker.name == diagnosis.culprit; });
  std::string table;
  for (int least = 0; least < 10; ++least) {
    table = table_of(workers, least);
    if (columns_of(table) <= look.width) break;
  }
  std::vector<std::string> lines = split(trim(fitted(table, look.width)), '\n');
  if (!diagnosis.culprit.empty() && lines.size() > 2) lines[2] = paint("31", lines[2]);
  const bool fine = diagnosis.kind == Diagnosis::Kind::fine;
  std::string text = paint("1", std::string(trim(wrapped(heading(run, name, status), look.width))));
  text += '\n' + paint(fine ? "32" : "33", std::string(trim(wrapped(diagnosis.text, look.width))));
  text += "\n\n" + join(lines, "\n") + '\n';
  if (!run.events.empty()) text += '\n';
  const size_t skipped = run.events.size() - std::min(run.events.size(), kShownEvents);
  for (size_t i = skipped; i < run.events.size(); ++i)
    text += wrapped(fmt::format("{} ago, step {}: {}",
                                format_duration(std::max(0.0, run.at - run.events[i].at)),
                                format_count(run.events[i].step), run.events[i].text),
                    look.width);
  return text;
}

}  // namespace artel::observe
