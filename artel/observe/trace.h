// Timelines of all workers and threads as Chrome trace JSON, for Perfetto or chrome://tracing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/base/time.h"

namespace artel::observe {

// The threads of a worker: kMain runs the steps, kWire exchanges sums, and threads from kFirstLane
// on run lanes.
struct TraceThread {
  static constexpr int kMain = 0, kWire = 1, kFirstLane = 2;
};

struct TraceEvent {
  std::string name;      // "conv1 forward"
  std::string category;  // "step", "compute", "wait", "wire", "update"
  int process = 0;       // a worker's rank
  int thread = 0;        // kMain, kWire, or a lane
  double begin = 0;      // seconds since the common origin of all events
  double duration = 0;
};

// Collects events. Thread safe.
class Trace {
 public:
  void name_process(int process, std::string name);
  void name_thread(int process, int thread, std::string name);
  void add(TraceEvent event);
  // Upper bound on the difference between the clocks of two processes, in seconds.
  void set_clock_error(double seconds);

  std::vector<TraceEvent> events() const;
  double clock_error() const;
  // The given name, or "worker N".
  std::string process_name(int process) const;

  // {"traceEvents": [...]}, events ordered by begin.
  std::string json() const;
  void save(const std::filesystem::path& path) const;
  // Reads a file written by `save` or by another program. Reads only names and complete events
  // ("ph": "X"). Throws an Error of kind not_found, io, or corrupt.
  void load(const std::filesystem::path& path);

 private:
  mutable Mutex mutex_;
  std::map<int, std::string> processes_ ARTEL_GUARDED_BY(mutex_);
  std::map<std::pair<int, int>, std::string> threads_ ARTEL_GUARDED_BY(mutex_);
  std::vector<TraceEvent> events_ ARTEL_GUARDED_BY(mutex_);
  double clock_error_ ARTEL_GUARDED_BY(mutex_) = 0;
};

// Adds an event for its own lifetime. Does nothing with a null trace.
class TraceScope {
 public:
  // Sets begin and duration of `event`, relative to `origin`.
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
