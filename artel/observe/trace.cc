#include "artel/observe/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "artel/base/file.h"

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
  std::lock_guard lock(mutex_);
  processes_[process] = std::move(name);
}

void Trace::name_thread(int process, int thread, std::string name) {
  std::lock_guard lock(mutex_);
  threads_[{process, thread}] = std::move(name);
}

void Trace::add(TraceEvent event) {
  std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<TraceEvent> Trace::events() const {
  std::lock_guard lock(mutex_);
  return events_;
}

std::string Trace::json() const {
  std::vector<TraceEvent> ordered = events();
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  Json list = Json::array();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [process, name] : processes_)
      list.push_back(naming("process_name", process, 0, name));
    for (const auto& [place, name] : threads_)
      list.push_back(naming("thread_name", place.first, place.second, name));
  }
  for (const TraceEvent& event : ordered) {
    list.push_back({{"ph", "X"},
                    {"name", event.name},
                    {"cat", event.category},
                    {"pid", event.process},
                    {"tid", event.thread},
                    {"ts", event.begin * 1e6},
                    {"dur", event.duration * 1e6}});
  }
  return Json{{"traceEvents", list}, {"displayTimeUnit", "ms"}}.dump();
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
