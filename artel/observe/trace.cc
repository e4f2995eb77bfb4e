#include "artel/observe/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::observe {
namespace {

using Json = nlohmann::ordered_json;

// A metadata event: the displayed name of a process ("process_name") or thread ("thread_name").
Json naming(const char* what, int process, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

void Trace::name_process(int process, std::string name) {
  const MutexLock lock(mutex_);
  processes_[process] = std::move(name);
}

void Trace::name_thread(int process, int thread, std::string name) {
  const MutexLock lock(mutex_);
  threads_[{process, thread}] = std::move(name);
}

void Trace::add(TraceEvent event) {
  const MutexLock lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<TraceEvent> Trace::events() const {
  const MutexLock lock(mutex_);
  return events_;
}

void Trace::set_clock_error(double seconds) {
  const MutexLock lock(mutex_);
  clock_error_ = seconds;
}

double Trace::clock_error() const {
  const MutexLock lock(mutex_);
  return clock_error_;
}

std::string Trace::process_name(int process) const {
  const MutexLock lock(mutex_);
  const auto found = processes_.find(process);
  return found != processes_.end() ? found->second : fmt::format("worker {}", process);
}

// Writes one event at a time, because a trace may have millions.
std::string Trace::json() const {
  std::vector<TraceEvent> ordered = events();
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::string text = R"({"traceEvents":[)";
  const auto add = [&](const std::string& event) {
    if (text.back() != '[') text += ",\n";
    text += event;
  };
  const MutexLock lock(mutex_);
  for (const auto& [process, name] : processes_)
    add(naming("process_name", process, 0, name).dump());
  for (const auto& [place, name] : threads_)
    add(naming("thread_name", place.first, place.second, name).dump());
  for (const TraceEvent& event : ordered)
    add(fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
                    Json(event.name).dump(), Json(event.category).dump(), event.process,
                    event.thread, event.begin * 1e6, event.duration * 1e6));
  return text + fmt::format(R"(],"displayTimeUnit":"ms","otherData":{{"clock_error_us":{:.3f}}}}})",
                            clock_error_ * 1e6);
}

void Trace::load(const std::filesystem::path& path) {
  constexpr uint64_t kMostBytes = uint64_t{4} << 30;
  const std::string where = path.string();
  const auto json = parse_json(read_file(path, kMostBytes), where);
  try {
    const auto& list = json.is_array() ? json : json.at("traceEvents");
    for (const auto& event : list) {
      const std::string kind = event.value("ph", "");
      const int process = event.value("pid", 0), thread = event.value("tid", 0);
      if (kind == "M" && event.at("name") == "process_name")
        name_process(process, event.at("args").at("name"));
      if (kind == "M" && event.at("name") == "thread_name")
        name_thread(process, thread, event.at("args").at("name"));
      if (kind == "X")
        add({event.value("name", ""), event.value("cat", ""), process, thread,
             event.at("ts").get<double>() / 1e6, event.value("dur", 0.0) / 1e6});
    }
    if (json.is_object() && json.contains("otherData"))
      set_clock_error(json["otherData"].value("clock_error_us", 0.0) / 1e6);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] is not a trace in the format of Chrome: {}", where,
         error.what());
  }
}

void Trace::save(const std::filesystem::path& path) const { write_file_atomically(path, json()); }

TraceScope::TraceScope(Trace* trace, Clock::time_point origin, TraceEvent event)
    : trace_(trace), origin_(origin) {
  if (!trace_) return;
  event_ = std::move(event);
  event_.begin = seconds_between(origin_, Clock::now());
}

TraceScope::~TraceScope() {
  if (!trace_) return;
  event_.duration = seconds_between(origin_, Clock::now()) - event_.begin;
  trace_->add(std::move(event_));
}

}  // namespace artel::observe
