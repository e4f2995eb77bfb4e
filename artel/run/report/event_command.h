// Runs the user's command for events (observe.on_event), one at a time, in a thread of its own.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <thread>

#include "artel/base/mutex.h"
#include "artel/base/time.h"
#include "artel/observe/live.h"

namespace artel {

class EventCommand {
 public:
  // `folder` is that of the run. An empty command: nothing is run.
  EventCommand(std::string command, std::filesystem::path folder);
  // Commands that wait or run have a few more seconds.
  ~EventCommand();
  EventCommand(const EventCommand&) = delete;
  EventCommand& operator=(const EventCommand&) = delete;

  // Returns at once. While many are waiting, further ones are dropped.
  void run(const observe::LiveEvent& event);

 private:
  void work();
  void run_one(const observe::LiveEvent& event);
  bool time_is_up() const;

  const std::string command_;
  const std::filesystem::path folder_;
  mutable Mutex mutex_;  // guards the members below
  Condition changed_;
  std::deque<observe::LiveEvent> waiting_ ARTEL_GUARDED_BY(mutex_);
  bool ends_ ARTEL_GUARDED_BY(mutex_) = false;
  Deadline ends_by_ ARTEL_GUARDED_BY(mutex_) = Deadline::never();
  std::thread thread_;
};

}  // namespace artel
