// When each worker computed, waited and exchanged, on one time axis.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/group.h"

namespace artel {

struct TimelineSpan {
  std::string name;      // "dense1 backward", "bucket 2"
  std::string category;  // "compute", "wait", "wire" or "update"
  int worker = 0;
  int thread = 0;    // one of Timeline's
  double begin = 0;  // seconds since all workers began
  double seconds = 0;
};

// Collects the spans of this worker. Thread safe.
class Timeline {
 public:
  // The threads of a worker that spans are drawn on; lane l is kFirstLane + l.
  static constexpr int kMain = 0, kWire = 1, kFirstLane = 2;
  static constexpr size_t kMostSpans = 200'000;  // of one worker; later ones are dropped

  // A collective call: time is counted from a moment when all workers meet. `group` may be null;
  // it is not kept.
  explicit Timeline(comm::Group* group);

  void add(std::string_view category, int thread, std::string name, Clock::time_point begin,
           Clock::time_point end);
  // A collective call: worker 0 gets the spans of all workers, the others get none.
  std::vector<TimelineSpan> gather(comm::Group* group);

  // Adds a span for its own lifetime; with a null timeline it does nothing.
  class Scope {
   public:
    Scope(Timeline* timeline, std::string_view category, int thread, std::string name)
        : timeline_(timeline), category_(category), thread_(thread), name_(std::move(name)) {}
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
    Clock::time_point begin_ = Clock::now();
  };

 private:
  Clock::time_point origin_;
  std::mutex mutex_;
  std::vector<TimelineSpan> spans_;
};

}  // namespace artel
