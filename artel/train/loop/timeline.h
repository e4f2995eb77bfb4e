// Spans in which each worker computed, waited, and exchanged data, on one time axis.
//
//   const artel::FitResult result = trainer.fit(samples, {.steps = 10, .timeline = true});
//   for (const artel::TimelineSpan& span : result.timeline.spans)
//     artel::println("{} {}: {} s", span.category, span.name, span.seconds);
#pragma once

#include <atomic>
#include <concepts>
#include <string>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/base/time.h"
#include "artel/comm/group.h"
#include "artel/train/loop/clocks.h"

namespace artel {

struct TimelineSpan {
  std::string name;      // "dense1 backward", "bucket 2"
  std::string category;  // "step", "compute", "wait", "wire" or "update"
  int worker = 0;
  int thread = 0;    // one of Timeline's
  double begin = 0;  // seconds since the first span of all workers began
  double seconds = 0;
};

// The spans of all workers by the clock of worker 0.
struct TimelineRecord {
  std::vector<TimelineSpan> spans;
  double clock_error = 0;  // maximum error of a worker's times in seconds
};

// Collects this worker's spans while recording. Thread safe, except start, meet, stop, and drop,
// which the step thread calls between two steps.
class Timeline {
 public:
  // Threads of a worker in the trace; lane l is kFirstLane + l.
  static constexpr int kMain = 0, kWire = 1, kFirstLane = 2;
  static constexpr size_t kMostSpans = 200'000;  // per worker; later spans are dropped

  // Starts recording. Collective; `group` may be null and is not stored.
  void start(comm::Group* group);
  // Call when a new group begins. Compares clocks with its members.
  void meet(comm::Group* group) { met_ = compare_clocks(group); }
  // Stops recording. Worker 0 gets the spans of all workers. The others get the same if
  // `all_get_it` is true on all workers, otherwise an empty record.
  TimelineRecord stop(comm::Group* group, bool all_get_it = false);
  // Stops recording on this worker only and discards its spans.
  void drop();

  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  void add(std::string_view category, int thread, std::string name, Clock::time_point begin,
           Clock::time_point end);

  // Adds a span for its own lifetime. Does nothing if the timeline is null or not recording. The
  // name is a text, or a function called only if needed.
  class Scope {
   public:
    Scope(Timeline* timeline, std::string_view category, int thread, std::string_view name)
        : Scope(timeline, category, thread, [&] { return std::string(name); }) {}
    Scope(Timeline* timeline, std::string_view category, int thread,
          const std::invocable auto& name)
        : timeline_(timeline && timeline->recording() ? timeline : nullptr),
          category_(category),
          thread_(thread) {
      if (!timeline_) return;
      name_ = name();
      begin_ = Clock::now();
    }
    ~Scope() {
      if (timeline_) timeline_->add(category_, thread_, std::move(name_), begin_, Clock::now());
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Timeline* timeline_;
    std::string_view category_;
    int thread_;
    std::string name_;
    Clock::time_point begin_;
  };

 private:
  std::atomic<bool> recording_{false};
  ClockReading met_;
  Mutex mutex_;
  std::vector<TimelineSpan> spans_ ARTEL_GUARDED_BY(mutex_);  // times of this worker's own clock
};

}  // namespace artel
