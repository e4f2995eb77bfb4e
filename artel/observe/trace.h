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

// The threads of a worker: the one that makes the steps, the one that exchanges sums, and from
// kFirstLane on those of lanes.
struct TraceThread {
  static constexpr int kMain = 0, kWire = 1, kFirstLane = 2;
};

struct TraceEvent {
  std::string name;      // "conv1 forward"
  std::string category;  // "step", "compute", "wait", "wire", "update"
  int process = 0;       // a worker's rank
  int thread = 0;        // kMain, kWire or one of its lanes
  double begin = 0;      // seconds since the common origin of all events
  double duration = 0;
};

// Collects events. Thread safe.
class Trace {
 public:
  void name_process(int process, std::string name);
  void name_thread(int process, int thread, std::string name);
  void add(TraceEvent event);
  // Seconds by which the clocks of two processes may differ, at most.
  void set_clock_error(double seconds);

  std::vector<TraceEvent> events() const;
  double clock_error() const;
  // Its name, or "worker N".
  std::string process_name(int process) const;

  // {"traceEvents": [...]}, events ordered by begin.
  std::string json() const;
  void save(const std::filesystem::path& path) const;
  // What `save` has written, or another program in this format: only its names and its complete
  // events ("ph": "X") are read. Throws an Error of kind not_found, io or corrupt.
  void load(const std::filesystem::path& path);

 private:
  mutable std::mutex mutex_;
  std::map<int, std::string> processes_;
  std::map<std::pair<int, int>, std::string> threads_;
  std::vector<TraceEvent> events_;
  double clock_error_ = 0;
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
