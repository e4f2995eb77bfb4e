// Timelines of what each worker and thread did, as Chrome trace JSON: open them in Perfetto
// or in chrome://tracing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "artel/base/time.h"

namespace artel::observe {

struct TraceEvent {
  std::string name;      // "conv1 forward"
  std::string category;  // "compute", "communication", "wait", ...
  int process = 0;       // a worker's rank
  int thread = 0;
  double begin = 0;  // seconds since the common origin of all events
  double duration = 0;
};

// Collects events. Thread safe.
class Trace {
 public:
  void name_process(int process, std::string name);
  void name_thread(int process, int thread, std::string name);
  void add(TraceEvent event);
  std::vector<TraceEvent> events() const;

  // {"traceEvents": [...]}, events ordered by begin.
  std::string json() const;
  void save(const std::filesystem::path& path) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::string> processes_;
  std::map<std::pair<int, int>, std::string> threads_;
  std::vector<TraceEvent> events_;
};

// Adds an event that spans its own lifetime; does nothing with a null trace.
class TraceScope {
 public:
  // `event` needs neither begin nor duration; times are relative to `origin`.
  TraceScope(Trace* trace, Clock::time_point origin, TraceEvent event);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Trace* trace_;
  Clock::time_point origin_;
  TraceEvent event_;
};

}  // namespace artel::observe
