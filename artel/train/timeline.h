// When each worker computed, waited and exchanged, on one time axis.
//
//   const artel::FitResult result = trainer.fit(samples, {.steps = 10, .timeline = true});
//   for (const artel::TimelineSpan& span : result.timeline.spans)
//     artel::println("{} {}: {} s", span.category, span.name, span.seconds);
#pragma once

#include <atomic>
#include <concepts>
#include <mutex>
#include <string>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/group.h"
#include "artel/train/clocks.h"

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
  double clock_error = 0;  // seconds by which a worker's times may be off, at most
};

// Collects the spans of this worker while it is recording. Thread safe, but start, meet, stop and
// drop are for the thread of the steps, between two of them.
class Timeline {
 public:
  // The threads of a worker that spans are drawn on; lane l is kFirstLane + l.
  static constexpr int kMain = 0, kWire = 1, kFirstLane = 2;
  static constexpr size_t kMostSpans = 200'000;  // of one worker; later ones are dropped

  // Collective calls; `group` may be null, and is not kept.
  void start(comm::Group* group);
  // Again in another group: clocks are compared with those of its members.
  void meet(comm::Group* group) { met_ = compare_clocks(group); }
  // The end of it: worker 0 gets the spans of all workers, the others get none.
  TimelineRecord stop(comm::Group* group);
  // Ends it at this worker alone, and forgets all.
  void drop();

  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  void add(std::string_view category, int thread, std::string name, Clock::time_point begin,
           Clock::time_point end);

  // Adds a span for its own lifetime; does nothing if the timeline is null or not recording. The
  // name is a text, or a function that makes it if it is needed.
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
  std::mutex mutex_;
  std::vector<TimelineSpan> spans_;  // times of this worker's own clock
};

}  // namespace artel
