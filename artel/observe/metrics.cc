#include "artel/observe/metrics.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::observe {
namespace {

constexpr const char* kFileName = "metrics.jsonl";

// Calls visit(line, object) for each complete line. Ignores a last line damaged by a crash.
void for_each_line(const std::filesystem::path& path,
                   const std::function<void(std::string_view, const nlohmann::json&)>& visit) {
  const std::string text = read_file(path);
  int64_t number = 1;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::string where = fmt::format("{}:{}", path.string(), number++);
    nlohmann::json object;
    try {
      object = parse_json(line, where);
      require(object.is_object() && object.contains("step") && object["step"].is_number_integer(),
              ErrorKind::corrupt, "[{}] expected a JSON object with a whole number \"step\"",
              where);
    } catch (const Error&) {
      if (end + 1 == text.size()) return;
      throw;
    }
    visit(line, object);
  }
}

// Truncates the file to the lines up to the resumed step. Returns their training time.
double keep_lines(const std::filesystem::path& path, int64_t resumed_step) {
  std::filesystem::create_directories(path.parent_path());
  std::string kept;
  double seconds = 0;
  if (resumed_step > 0 && std::filesystem::exists(path)) {
    for_each_line(path, [&](std::string_view line, const nlohmann::json& object) {
      if (object["step"].get<int64_t>() > resumed_step) return;
      kept.append(line) += '\n';
      const auto taken = object.find("seconds");
      if (taken != object.end() && taken->is_number()) seconds = *taken;
    });
  }
  write_file_atomically(path, kept);
  return seconds;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& folder, int64_t resumed_step)
    : seconds_before_(keep_lines(folder / kFileName, resumed_step)),
      lines_(folder / kFileName),
      events_(folder, resumed_step + 1),
      begin_(Clock::now()),
      flushed_(begin_) {}

void MetricsWriter::write(int64_t step, const Scalars& scalars) {
  const Clock::time_point now = Clock::now();
  nlohmann::ordered_json object = {{"step", step},
                                   {"seconds", seconds_before_ + seconds_between(begin_, now)}};
  for (const auto& [name, value] : scalars) object[name] = value;
  lines_.append(object.dump() + '\n');
  events_.write(step, scalars);
  flush_now_and_then(now);
}

void MetricsWriter::write_event(int64_t step, const std::string& kind, const std::string& text) {
  const Clock::time_point now = Clock::now();
  const nlohmann::ordered_json object = {
      {"step", step},
      {"seconds", seconds_before_ + seconds_between(begin_, now)},
      {"event", kind},
      {"text", text}};
  lines_.append(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
  flush_now_and_then(now);
}

void MetricsWriter::flush_now_and_then(Clock::time_point now) {
  if (seconds_between(flushed_, now) < 1) return;
  flushed_ = now;
  flush();
}

void MetricsWriter::flush() {
  lines_.flush();
  events_.flush();
}

void MetricsWriter::sync() {
  lines_.sync();
  events_.flush();
}

int64_t last_step_written(const std::filesystem::path& folder) {
  int64_t last = 0;
  if (!std::filesystem::exists(folder / kFileName)) return last;
  for_each_line(folder / kFileName, [&](std::string_view, const nlohmann::json& object) {
    if (!object.contains("event")) last = std::max(last, object["step"].get<int64_t>());
  });
  return last;
}

std::map<std::string, std::vector<std::pair<int64_t, double>>> read_metrics(
    const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::pair<int64_t, double>>> metrics;
  for_each_line(folder / kFileName, [&](std::string_view, const nlohmann::json& object) {
    for (const auto& [name, value] : object.items()) {
      if (name != "step" && value.is_number())
        metrics[name].emplace_back(object["step"].get<int64_t>(), value.get<double>());
    }
  });
  return metrics;
}

}  // namespace artel::observe
